package frontier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestRestoreOfHostsWithoutARequest: hosts of which nothing is stored may be fetched from when hosts may whose stored
// state says that there was no request. Both have the same starts, one after the other.
func TestRestoreOfHostsWithoutARequest(t *testing.T) {
	zero := must.Get(politeness.State{}.AppendBinary(nil))(t)
	now := epoch.Truncate(time.Minute).Add(2*time.Minute - 20*time.Millisecond)
	soon := now.UTC().Add(time.Second).Format("15:04")
	hours := must.Get(politeness.NewHours("", []string{"0:00-" + soon, "23:59-0:00"}, "politeness.hours"))(t)
	for name, amend := range map[string]func(*Options){
		"usual":       func(*Options) {},
		"no delay":    func(o *Options) { o.Politeness.Delay = 0 },
		"after death": func(o *Options) { o.HeldSince = epoch },
		"held before": func(o *Options) { o.HeldSince = epoch.Add(-time.Hour) },
		"long delay":  func(o *Options) { o.Politeness.Delay = 30 * 24 * time.Hour },
		"no robots":   func(o *Options) { o.NoRobots, o.HeldSince = true, epoch },
		"batches":     func(o *Options) { o.Batches = true },
		"paused":      func(o *Options) { o.Politeness.Paused = true },
		"hours":       func(o *Options) { o.Politeness.Hours = hours },
	} {
		var seen [2][]string
		for i, state := range [][]byte{zero, nil} {
			o := testOptions()
			o.Jitter = rand.New(rand.NewPCG(5, 6)).Float64
			amend(&o)
			f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
			for n := range 100 {
				s := storage.Host{ID: storage.HostID(n + 1), Name: "h.example.com"}
				s.Queues, s.Politeness = queueOf(2), state
				must.Do(t, f.Restore(&s, now.Add(time.Duration(n/30)*time.Second)))
				h := *f.hosts.get(s.ID)
				seen[i] = append(seen[i],
					fmt.Sprint(h.state, h.ready, h.waitReason, h.closed, h.delay, h.workAt, h.readyAt))
			}
		}
		for n := range seen[0] {
			must.True(t, seen[1][n] == seen[0][n], "%s: host %d has %s, want %s", name, n, seen[1][n], seen[0][n])
		}
	}
}
