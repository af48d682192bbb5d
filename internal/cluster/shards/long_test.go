//go:build cluster || soak

package shards

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// newLong makes a world with NATS servers that are processes, and children as nodes. Each address has two
// hosts, and one request at a time.
func newLong(t *testing.T, servers int, ttl time.Duration) (*world, *growing) {
	t.Helper()
	g := newGrowing(12, 2)
	web := serve(t, g.sites)
	return newWorldOf(t, web, allSeeds(t, web), natstest.StartProcesses(t, names, servers, nil),
		250*time.Millisecond, ttl), g
}

// startChildren starts nodes, each with a directory of its own.
func (w *world) startChildren(names ...string) (all []*child) {
	w.t.Helper()
	for _, name := range names {
		all = append(all, w.startChild(name, w.t.TempDir()))
	}
	return all
}

// owns returns the shards that the child has said last that it owns.
func (c *child) owns() []cluster.Shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.owned)
}

// slow reports whether a process of the test has done nothing for so long, because of the machine, that
// nodes may have lost their shards.
func (w *world) slow() bool {
	worst := w.stalled.Load()
	for _, c := range w.children {
		if !c.stops {
			worst = max(worst, c.stalled.Load())
		}
	}
	return worst > int64(w.ttl/4)
}

// ownerless measures for how long shards have no owner, until the result is called.
func (w *world) ownerless() func() (longest time.Duration) {
	end := make(chan struct{})
	var longest time.Duration
	var since [shards]time.Time
	var measuring sync.WaitGroup
	for s := range since {
		since[s] = time.Now()
	}
	measuring.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			for _, c := range w.running() {
				for _, s := range c.owns() {
					since[s] = time.Now()
				}
			}
			for _, at := range since {
				longest = max(longest, time.Since(at))
			}
		}
	})
	return func() time.Duration {
		close(end)
		measuring.Wait()
		return longest
	}
}

// checkOwnerless holds that no shard had no owner for longer than it may, unless the machine was slow.
func (w *world) checkOwnerless(longest, most time.Duration) {
	w.t.Helper()
	assert.True(w.t, longest <= most || w.slow(), "a shard had no owner for %v, at most %v are allowed", longest, most)
	w.t.Logf("the longest time of a shard without an owner: %v", longest.Round(time.Millisecond))
}

// client adds URLs through nodes, as users do, until it is stopped.
type client struct {
	w       *world
	sent    map[string]bool // host and path
	stopped chan struct{}
	adding  sync.WaitGroup
}

func (w *world) startClient() *client {
	c := &client{w: w, sent: make(map[string]bool), stopped: make(chan struct{})}
	c.adding.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-c.stopped:
				return
			case <-time.After(100 * time.Millisecond):
			}
			children := w.running()
			if len(children) == 0 {
				continue
			}
			host, path := w.web.Sites()[rand.IntN(len(w.web.Sites()))], fmt.Sprintf("/added/%d", n)
			i := slices.IndexFunc(children, func(c *child) bool { return slices.Contains(c.owns(), shardOf(host)) })
			if i < 0 {
				continue
			}
			c.sent[host+path] = true
			children[i].say("add " + w.web.URL(host, path))
		}
	})
	return c
}

func (c *client) stop() {
	close(c.stopped)
	c.adding.Wait()
}

// want returns the pages of the web, those that nodes have acknowledged to the client, and those that it
// has sent and nodes have requested, though it had no answer.
func (c *client) want(web []string) (want []string) {
	c.w.t.Helper()
	want = slices.Clone(web)
	for _, page := range pages(c.w.web) {
		if c.sent[page] {
			want = append(want, page)
		}
	}
	acknowledged := 0
	for _, child := range c.w.children {
		child.mu.Lock()
		for url, added := range child.accepted {
			if added {
				acknowledged++
				host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
				host, _, _ = strings.Cut(host, ":")
				want = append(want, host+"/"+path)
			}
		}
		child.mu.Unlock()
	}
	slices.Sort(want)
	assert.Not(c.w.t, acknowledged, 0, "no URL of a client was acknowledged")
	c.w.t.Logf("%d URLs of the client, %d acknowledged", len(c.sent), acknowledged)
	return slices.Compact(want)
}

// acknowledged waits until all that was acknowledged has been requested.
func (c *client) acknowledged(web []string) (want []string) {
	c.w.t.Helper()
	c.w.eventually("the URLs of the client", func() error {
		got := pages(c.w.web)
		for _, page := range c.want(web) {
			if _, found := slices.BinarySearch(got, page); !found {
				return fmt.Errorf("%s is missing", page)
			}
		}
		return nil
	})
	return c.want(web)
}

// killAtRandom kills a node at random, so many times, while clients add URLs. Nodes come back with their
// directories or without.
func killAtRandom(t *testing.T, count int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	w, g := newLong(t, 1, 3*time.Second)
	w.startChildren("a", "b", "c")
	w.goesOn("after the start", 3)
	w.startChildren(hasty)
	ownerless := w.ownerless()
	client := w.startClient()
	quiet := w.noise(rand.New(rand.NewPCG(seed, 2)))
	for range count {
		running := w.running()
		victim := running[random.IntN(len(running))]
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		victim.kill()
		time.Sleep(time.Duration(random.Int64N(int64(w.ttl))))
		dir := victim.dir
		if random.IntN(4) == 0 {
			dir = t.TempDir()
		}
		w.startChild(victim.name, dir)
		if random.IntN(4) == 0 {
			w.goesOn("after a kill", 1)
		}
	}
	messages := quiet()
	client.stop()
	web := w.finish(g)
	want := client.acknowledged(web)
	w.checkOwnerless(ownerless(), time.Minute)
	w.leaveAll()
	t.Logf("%d messages that cannot be read", messages)
	t.Logf("%d kills, %d pages, %d of them twice", count, len(want), w.checkRepeats(want))
}

// noise publishes messages that cannot be read, to the logs, the scope, the shards and the registers of nodes, and has
// nodes lose requests for messages, until the result is called. Messages that keep a shard in quarantine are set aside
// some time later, as an operator would. The result returns how many there were.
func (w *world) noise(random *rand.Rand) (end func() int) {
	c := w.erases()
	ctx, stop := context.WithCancel(w.t.Context())
	count := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			shard := random.IntN(shards)
			subjects := []string{names.Subject("scope"), names.OfShard("log", int32(shard)),
				names.OfShard("in", int32(shard))}
			for _, child := range w.running() {
				subjects = append(subjects, names.Subject("member", child.name))
			}
			subject := subjects[random.IntN(len(subjects))]
			ack, err := c.js.Publish(ctx, subject, []byte("twenty-two octets here"))
			pause(ctx, time.Duration(random.Int64N(int64(4*time.Second))))
			if err == nil && subject == names.OfShard("in", int32(shard)) {
				c.setAside(shard, ack.Sequence)
			}
			if running := w.running(); len(running) > 0 && random.IntN(4) == 0 {
				_, end := c.loseRequests(running[random.IntN(len(running))].proxies[0])
				pause(ctx, time.Second)
				end()
			}
		}
		count <- n
	}()
	return func() int {
		stop()
		return <-count
	}
}

// The subject of requests for messages, and one of the same length.
const requests, lostRequests = "$JS.API.CONSUMER.MSG.NEXT.", "$XX.API.CONSUMER.MSG.NEXT."

// loseRequests breaks the connections of a node, and has it lose its requests for messages until end is called: they
// come to the result, and nobody answers.
func (c *erasing) loseRequests(p *natstest.Proxy) (lost *nats.Subscription, end func()) {
	lost, err := c.js.Conn().SubscribeSync(lostRequests + ">")
	assert.NoError(c.w.t, err)
	p.Divert(requests, lostRequests)
	p.Break()
	return lost, func() {
		p.Divert("", "")
		_ = lost.Unsubscribe() // the connection ends with the test
	}
}

// setAside sets a message for a shard aside, and has its owner try again.
func (c *erasing) setAside(shard int, sequence uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		err := journal.SetAside(ctx, c.js, names, shard, sequence, func([]byte) error { return nil })
		if err == nil || errors.Is(err, journal.ErrNotAside) { // it has had no answer the first time
			break
		}
		pause(ctx, 100*time.Millisecond)
	}
	s, err := membership.ReadSurvey(ctx, c.js, names)
	if err != nil {
		return // the owner tries again by itself
	}
	if owner := s.Shards[shard].Node; owner != "" && owner != membership.UnknownOwner {
		_ = membership.Command(ctx, c.js.Conn(), names, owner, membership.RetryFaults)
	}
}

// leaveAll makes all nodes leave in an orderly way.
func (w *world) leaveAll() {
	w.t.Helper()
	for _, c := range w.running() {
		c.leave()
	}
}
