package politeness

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// slowTrace are hosts that respond once a second each, in steps of a second.
type slowTrace struct {
	r     *rand.Rand
	s     Slowdowns
	now   time.Time
	noise float64 // standard deviation, in powers of 2
	ended []netip.Addr
}

func newSlowTrace(seed uint64, noise float64) *slowTrace {
	return &slowTrace{r: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), noise: noise}
}

func slowTraceAddress(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }

// run has hosts of addresses respond. took is the usual time of host h at address a.
func (w *slowTrace) run(seconds, addresses, hosts int, took func(a, h int) time.Duration) (found []Slowdown) {
	for range seconds {
		w.now = w.now.Add(time.Second)
		for a := range addresses {
			for h := range hosts {
				d := float64(took(a, h)) * math.Exp2(w.r.NormFloat64()*w.noise)
				w.s.Observe(slowTraceAddress(a), fmt.Sprintf("h%d.a%d.test", h, a), time.Duration(d), w.now)
			}
		}
		var ended []netip.Addr
		found, ended = w.s.Found(w.now)
		w.ended = append(w.ended, ended...)
	}
	return found
}

func (w *slowTrace) usual(int, int) time.Duration { return 150 * time.Millisecond }

// TestSlowdownIsFound: four of five hosts of one address take three times as long from one second
// to the next. That is found within a few responses, stays while it lasts, and ends with it.
func TestSlowdownIsFound(t *testing.T) {
	for seed := range uint64(20) {
		w := newSlowTrace(seed, 0.5)
		if found := w.run(60, 3, 5, w.usual); len(found) > 0 {
			t.Fatalf("before anything happens: %+v", found)
		}
		slow := func(a, h int) time.Duration {
			if a == 1 && h < 4 {
				return 450 * time.Millisecond
			}
			return w.usual(a, h)
		}
		began := w.now
		found := w.run(15, 3, 5, slow)
		must.True(t, len(found) == 1 && found[0].Address == slowTraceAddress(1) && found[0].Of == 5,
			"seed %d: found %+v", seed, found)
		after := found[0].Since.Sub(began)
		assert.True(t, after >= 2*time.Second && after <= 12*time.Second, "seed %d: found after %v", seed, after)
		if f := found[0].Factor; f < 1.8 || f > 6 {
			t.Errorf("seed %d: slower by %.1f", seed, f)
		}
		assert.True(t, len(found[0].Hosts) >= 3 && strings.HasSuffix(found[0].Hosts[0], ".a1.test"),
			"seed %d: hosts %v", seed, found[0].Hosts)
		if w.run(60, 3, 5, slow); len(w.ended) > 0 {
			t.Errorf("seed %d: it ends while it lasts", seed)
		}
		if found = w.run(30, 3, 5, w.usual); len(found) > 0 || len(w.ended) != 1 || w.ended[0] != slowTraceAddress(1) {
			t.Errorf("seed %d: afterwards %+v, ended %v", seed, found, w.ended)
		}
	}
}

// TestSlowdownIsNotFound has what looks like one and is none.
func TestSlowdownIsNotFound(t *testing.T) {
	for name, test := range map[string]struct {
		noise float64
		took  func(second int) func(a, h int) time.Duration
	}{
		"noise": {1, func(int) func(int, int) time.Duration {
			return func(int, int) time.Duration { return 200 * time.Millisecond }
		}},
		"one host": {0.5, func(second int) func(int, int) time.Duration {
			return func(_, h int) time.Duration {
				if h == 0 && second > 60 {
					return 2 * time.Second
				}
				return 200 * time.Millisecond
			}
		}},
		"every address, so it is the crawler": {0.5, func(second int) func(int, int) time.Duration {
			return func(int, int) time.Duration {
				if second > 60 {
					return time.Second
				}
				return 200 * time.Millisecond
			}
		}},
		"too little to be felt": {0.3, func(second int) func(int, int) time.Duration {
			return func(a, _ int) time.Duration {
				if a == 0 && second > 60 {
					return 40 * time.Millisecond
				}
				return 10 * time.Millisecond
			}
		}},
		"one after the other, and each stays so": {0.3, func(second int) func(int, int) time.Duration {
			return func(_, h int) time.Duration {
				if second > 100+1500*h {
					return 800 * time.Millisecond
				}
				return 200 * time.Millisecond
			}
		}},
		"single responses": {0.3, func(second int) func(int, int) time.Duration {
			return func(int, int) time.Duration {
				if second%6 == 0 {
					return 5 * time.Second
				}
				return 200 * time.Millisecond
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				w := newSlowTrace(seed, test.noise)
				for second := range 3000 {
					found := w.run(1, 3, 4, test.took(second))
					must.True(t, len(found) <= 0, "seed %d, after %d s: %+v", seed, second, found)
				}
			}
		})
	}
}

// TestSlowdownsAreBounded: any number of hosts takes bounded memory, and idle ones are forgotten.
func TestSlowdownsAreBounded(t *testing.T) {
	var s Slowdowns
	now := time.Unix(1e9, 0)
	for i := range 3 * slowdownMost {
		address := netip.AddrFrom16([16]byte{0x20, 1, 2: byte(i >> 8), 3: byte(i), 15: byte(i)})
		s.Observe(address, fmt.Sprintf("h%d.test", i), time.Second, now)
		s.Observe(address.Next(), fmt.Sprintf("h%d.test", i), time.Second, now) // of the same network
	}
	assert.Equal(t, s.hosts, slowdownMost, "hosts are kept")
	s.Observe(netip.Addr{}, "h.test", time.Second, now)
	if s.Found(now.Add(slowdownKept + 1)); s.hosts != 0 || len(s.addresses) != 0 {
		t.Errorf("%d hosts of %d addresses stay", s.hosts, len(s.addresses))
	}
}

func BenchmarkSlowdowns(b *testing.B) {
	w := newSlowTrace(1, 0.5)
	w.run(30, 100, 20, w.usual)
	b.Run("Observe", func(b *testing.B) {
		address := slowTraceAddress(1)
		for b.Loop() {
			w.s.Observe(address, "h1.a1.test", 100*time.Millisecond, w.now)
		}
	})
	b.Run("Found/hosts=2000", func(b *testing.B) {
		for b.Loop() {
			w.s.Found(w.now)
		}
	})
}
