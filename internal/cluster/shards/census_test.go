package shards

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// simulated is a cluster whose shards fetch, publish and read in random order, while one of its nodes finds
// out whether that is over.
type simulated struct {
	rng    *rand.Rand
	stream []int // of each message the shard that it is for; -1: a mark
	shards []simulatedShard
	left   int // messages that may still be published
}

type simulatedShard struct {
	work   int    // URLs to fetch
	read   uint64 // sequence up to which it has read
	number uint64 // commits
	epoch  uint64
}

// step lets a shard do something: commit what it has fetched, or take a message.
func (c *simulated) step() {
	s := &c.shards[c.rng.IntN(len(c.shards))]
	switch c.rng.IntN(3) {
	case 0: // fetched: what is found is published before the commit
		if s.work == 0 {
			return
		}
		for range c.rng.IntN(3) {
			if c.left > 0 {
				c.left--
				c.stream = append(c.stream, c.rng.IntN(len(c.shards)))
			}
		}
		s.work--
		s.number++
	case 1:
		c.readOne(s)
	default:
		if c.rng.IntN(100) == 0 { // another owner: it reads again from the last commit on, which is no later
			s.epoch++
		}
	}
}

func (c *simulated) readOne(s *simulatedShard) {
	for i := s.read; i < uint64(len(c.stream)); i++ {
		switch to := c.stream[i]; {
		case to < 0:
			s.read = i + 1
		case &c.shards[to] == s:
			s.read, s.work, s.number = i+1, s.work+1, s.number+1
		default:
			continue
		}
		return
	}
}

// isOver reports whether it really is over.
func (c *simulated) isOver() bool {
	for i := range c.shards {
		if c.shards[i].work > 0 {
			return false
		}
		for at, to := range c.stream {
			if to == i && uint64(at) >= c.shards[i].read {
				return false
			}
		}
	}
	return true
}

// TestCensus: whatever the shards do meanwhile, nobody takes the crawl for over before it is, and
// somebody does when it is.
func TestCensus(t *testing.T) {
	synctest.Test(t, testCensus)
}

func testCensus(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 19))
		c := &simulated{rng: rng, shards: make([]simulatedShard, 2+rng.IntN(4)), left: 30}
		c.shards[0].work = 1
		quick := rng.IntN(30) // how much is done meanwhile
		var one sync.Mutex    // shards are queried side by side
		work := func() {
			for range rng.IntN(quick + 1) {
				c.step()
			}
		}
		all := census{
			shards: len(c.shards),
			mark: func(context.Context) (uint64, error) {
				work()
				c.stream = append(c.stream, -1)
				return uint64(len(c.stream)), nil
			},
			rest: func(_ context.Context, n cluster.Shard, _ bool) (rest, error) {
				one.Lock()
				defer one.Unlock()
				work()
				s := &c.shards[n]
				read := s.read // before it is known that it is at rest
				if rng.IntN(2) == 0 {
					work()
				}
				if quick == 0 { // else nothing would ever be read
					c.readOne(s)
				}
				return rest{epoch: s.epoch, read: read, done: s.work == 0, number: s.number}, nil
			},
		}
		for round := 0; ; round++ {
			_, over, err := all.isOver(t.Context())
			must.Do(t, err)
			must.True(t, over == c.isOver() || !over, "seed %d: taken for over at round %d: %+v, %v", seed, round,
				c.shards, c.stream)
			if over {
				break
			}
			must.True(t, round <= 10_000, "seed %d: nobody sees that it is over: %+v", seed, c.shards)
			if quick == 0 {
				c.step()
			}
		}
	}
}

// TestCensusSideBySide: a round of queries takes as long as a few of them, and ends when one shard is not at rest.
func TestCensusSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 10 * time.Millisecond
		var busy, most atomic.Int32
		all := census{shards: 64, rest: func(ctx context.Context, s cluster.Shard, closed bool) (rest, error) {
			most.Store(max(most.Load(), busy.Add(1)))
			defer busy.Add(-1)
			if closed && s > 0 {
				<-ctx.Done()
				return rest{}, ctx.Err()
			}
			time.Sleep(slow)
			return rest{done: !closed, number: uint64(s)}, nil
		}}
		start := time.Now()
		answers, over, err := all.queryAll(t.Context(), 0, false)
		if took := time.Since(start); !over || err != nil || took > 4*slow || most.Load() > maxSideBySide {
			t.Errorf("%v, %v after %v with %d at a time", over, err, took, most.Load())
		}
		for s, answer := range answers {
			assert.Equal(t, answer.number, uint64(s), "shard", s, "has the answer of")
		}
		start = time.Now()
		if _, over, err := all.queryAll(t.Context(), 0, true); over || err != nil || time.Since(start) > 4*slow {
			t.Errorf("%v, %v after %v", over, err, time.Since(start))
		}
	})
}

// TestCensusOpens: when it is not over after all, each shard takes URLs from users again, although one is busy; also
// one that another decider has closed.
func TestCensusOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		closed, marks := make([]bool, 3*maxSideBySide), uint64(0)
		all := census{
			shards: len(closed),
			mark: func(context.Context) (uint64, error) {
				marks++
				return marks, nil
			},
			rest: func(ctx context.Context, n cluster.Shard, closes bool) (rest, error) {
				if (n > 0) != closes {
					pause(ctx, time.Millisecond) // the first one answers first, and last when they are closed
				}
				if ctx.Err() != nil {
					return rest{}, ctx.Err()
				}
				mu.Lock()
				defer mu.Unlock()
				closed[n] = closes
				return rest{done: n > 0 || marks < 2, read: marks}, nil // a user adds a URL after the first mark
			},
		}
		for _, after := range []string{"a census of its own", "one of another decider"} {
			for range 2 {
				_, over, err := all.isOver(t.Context())
				must.True(t, !over && err == nil, "over %t, %v", over, err)
			}
			i := slices.Index(closed, true)
			assert.True(t, i < 0, "after %s shard %d takes no URLs", after, i)
			for i := range closed {
				closed[i] = true
			}
			all.mayBeClosed = true
		}
	})
}
