package frontier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// TestStartsAreSpread: many hosts that could all begin at once do not, whether the store knows them already or a page led
// to them; one host alone begins at once, and no host waits for longer than its delay.
func TestStartsAreSpread(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts int
		found bool    // while the crawl runs
		most  float64 // part of the hosts that begin within the same hundred milliseconds
	}{
		{"one", 1, false, 1},
		{"one that is found", 1, true, 1},
		{"many", 3000, false, 0.25},
		{"many that are found", 3000, true, 0.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			o.Politeness.Delay = 2 * time.Second
			o.Resolvers = c.hosts
			o.Jitter = rand.New(rand.NewPCG(3, 4)).Float64
			m := newMemory()
			w := newWorld(t, o, m)
			w.quick, w.workers, w.loadTime = true, c.hosts, 0
			var urls []string
			for i := range c.hosts {
				name := fmt.Sprintf("h%d.test", i)
				urls = append(urls, "http://"+name+"/")
				if !c.found {
					m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 1)
				}
			}
			w.open()
			if c.found {
				w.add(urls...)
			}
			w.run(5 * time.Second)
			begun := map[string]bool{}
			at := map[time.Duration]int{}
			busiest := 0
			for _, r := range w.log {
				if begun[r.host] {
					continue
				}
				begun[r.host] = true
				since := r.start.Sub(epoch)
				if since > o.Politeness.Delay+100*time.Millisecond {
					t.Fatalf("%v: the first request comes after more than a delay", r)
				}
				if c.hosts == 1 && since > 50*time.Millisecond {
					t.Errorf("%v: a host that is alone does not begin at once", r)
				}
				at[since/(100*time.Millisecond)]++
				busiest = max(busiest, at[since/(100*time.Millisecond)])
			}
			if len(begun) != c.hosts {
				t.Fatalf("%d of %d hosts were asked", len(begun), c.hosts)
			}
			if part := float64(busiest) / float64(c.hosts); part > c.most {
				t.Errorf("%.0f %% of the hosts begin within a tenth of a second", 100*part)
			}
		})
	}
}

// TestLargeHostLeavesRoom puts a host of a million URLs beside one of three, with one worker for both: the small one is done
// as soon as its delay allows.
func TestLargeHostLeavesRoom(t *testing.T) {
	o := testOptions()
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "large.test", Port: 80}, 1_000_000)
	m.makeUp(weburl.Origin{Scheme: "http", Host: "small.test", Port: 80}, 3)
	w := newWorld(t, o, m)
	w.workers = 1
	w.answer = func(Lease) answer { return answer{took: 900 * time.Millisecond} } // the large one alone would keep the worker busy
	w.open()
	w.run(20 * time.Second)
	if n := w.served()["small.test"]; n != 3 {
		t.Errorf("%d of the 3 pages of the small host were asked for in 20 seconds, %d of the large one", n, w.served()["large.test"])
	}
	w.checkManners()
}
