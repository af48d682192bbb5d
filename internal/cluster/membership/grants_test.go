package membership

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// limited are engines that make requests under shared limits.
type limited struct {
	mu       sync.Mutex
	state    *limitState
	holdings map[*Holding]context.CancelFunc
	ended    map[string]time.Duration // of the last request of the node under a limit
	wg       sync.WaitGroup
}

func newLimited(s *limitState) *limited {
	return &limited{state: s, holdings: make(map[*Holding]context.CancelFunc), ended: make(map[string]time.Duration)}
}

// limitState has the requests of all nodes under each limit.
type limitState struct {
	mu       sync.Mutex
	requests map[string][]flight
	served   map[string]map[cluster.Shard]int
}

// flight is the time in which a request certainly was in flight. A process that the scheduler has
// forgotten is not judged.
type flight struct{ from, to time.Duration }

var testLimits = map[string]cluster.Limit{"slots": {Slots: 3}, "delay": {Slots: 1, Delay: 50 * time.Millisecond}}

func (e *limited) Open(h *Holding) {
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.Lock()
	e.holdings[h] = cancel
	e.mu.Unlock()
	e.wg.Go(func() {
		for key, limit := range testLimits {
			h.n.Need(key, cluster.Need{Limit: limit, Waiting: 1})
		}
		for ctx.Err() == nil {
			for key := range testLimits {
				e.request(h, key)
			}
			pause(ctx, time.Millisecond)
		}
		h.Ended(nil)
	})
}

// start takes a slot, if the node has one and has kept the delay after its last request.
func (e *limited) start(h *Holding, key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return uptime() >= e.ended[key]+testLimits[key].Delay && h.n.Start(key)
}

func (e *limited) end(h *Holding, key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if testLimits[key].Delay > 0 {
		e.ended[key] = uptime()
	}
	h.n.End(key)
}

// request makes a request if it may.
func (e *limited) request(h *Holding, key string) {
	if !e.start(h, key) {
		return
	}
	defer e.end(h, key)
	r, err := h.Begin(context.Background(), key)
	if err != nil {
		return
	}
	defer r.End()
	from := uptime()
	if r.Check() != nil {
		return
	}
	pause(r.Context(), 5*time.Millisecond)
	to := uptime()
	if r.Check() != nil {
		to = from
	}
	s := e.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[key] = append(s.requests[key], flight{from, to})
	if s.served[key] == nil {
		s.served[key] = make(map[cluster.Shard]int)
	}
	s.served[key][h.Shard()]++
}

func (e *limited) Close(h *Holding, _ bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holdings[h]()
}

func (e *limited) Granted(string) {}

// TestGrants: shards of two nodes share limits. Their requests stay within them, and each shard has
// its turns, also after one of the nodes has left.
func TestGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	s := &limitState{requests: make(map[string][]flight), served: make(map[string]map[cluster.Shard]int)}
	w.alter = func(o *Options) {
		o.Cluster.Shards = 6
		o.Engines = newLimited(s)
	}
	a, b := w.start("a"), w.start("b")
	turns := func() {
		t.Helper()
		s.mu.Lock()
		s.served = make(map[string]map[cluster.Shard]int)
		s.mu.Unlock()
		testkit.Eventually(t, "each shard has its turns", func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for key := range testLimits {
				for shard := range cluster.Shard(6) {
					if s.served[key][shard] < 2 {
						return errNotYet
					}
				}
			}
			return nil
		})
	}
	turns()
	b.leave()
	turns()
	a.leave()
	for key, limit := range testLimits {
		flights := s.requests[key]
		slices.SortFunc(flights, func(a, b flight) int { return int(a.from - b.from) })
		for i, f := range flights {
			together := 1
			for _, earlier := range flights[:i] {
				if earlier.to > f.from {
					together++
				}
				if since := f.from - earlier.to; limit.Delay > 0 && since < limit.Delay {
					t.Fatalf("a request under %q began %v after the last, not %v", key, since, limit.Delay)
				}
			}
			must.True(t, together <= limit.Slots, "%d requests at a time under %q, which allows %d", together, key,
				limit.Slots)
		}
	}
}
