package membership

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// manual are engines that a test drives itself.
type manual struct {
	opened  chan *Holding
	closed  chan *Holding
	granted chan string
}

func newManual() *manual {
	return &manual{make(chan *Holding, 1000), make(chan *Holding, 1000), make(chan string, 1000)}
}

func (e *manual) Open(h *Holding) { e.opened <- h }

func (e *manual) Close(h *Holding, _ bool) {
	e.closed <- h
	h.Ended(nil)
}

func (e *manual) Granted(key string) {
	select {
	case e.granted <- key:
	default:
	}
}

// TestSleep: the machine sleeps for an hour between two looks. Nothing is started or written
// after it, and what is in flight is broken off.
func TestSleep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	e := newManual()
	var slept atomic.Int64
	w.alter = func(o *Options) {
		neverLate(o)
		o.Engines = e
		o.Uptime = func() time.Duration { return uptime() + time.Duration(slept.Load()) }
	}
	p := w.start("a")
	h := <-e.opened
	r := must.Get(h.Begin(t.Context()))(t)
	if err := r.Check(); err != nil || p.node.Trust().Until() == 0 {
		t.Errorf("%v, trust until %v", err, p.node.Trust().Until())
	}
	p.cut() // so that no heartbeat comes in between
	slept.Store(int64(time.Hour))
	assert.Is(t, r.Check(), ErrNotTrusted, "a request may be written")
	assert.Is(t, h.Check(), ErrNotTrusted, "a request may start")
	assert.Fails(h.Begin(t.Context()))(t, ErrNotTrusted, "a request has started")
	<-r.Context().Done()
	assert.Is(t, context.Cause(r.Context()), ErrNotTrusted)
	r.End()
	r.End()
	assert.NoError(t, h.Context().Err(), "the engine was broken off, but nobody else can have the shard")
	p.mend()
	testkit.Eventually(t, "trust comes back", func() error { return h.Check() })
}

// TestOneMachine: without a cluster there is no holding, and everything is allowed.
func TestOneMachine(t *testing.T) {
	var h *Holding
	var trust *Trust
	r, err := h.Begin(t.Context(), "key")
	assert.True(t, err == nil && h.Check() == nil && r.Check() == nil && r.Context() == t.Context(), "%v", err)
	r.End()
	assert.True(t, trust.Left() >= time.Hour && trust.Until() > 0, "no trust")
}

// TestFailedEngine: a node whose engine cannot open hands over what it has.
func TestFailedEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bad := newManual()
	w.alter = func(o *Options) { o.Engines = bad }
	a := w.start("a")
	h := <-bad.opened
	w.alter = nil
	b := w.start("b")
	h.Ended(errors.New("the disk fails"))
	w.served("the other has all", b)
	s := a.node.Status()
	assert.True(t, s.Drained && s.Joined, "%+v", s)
}

// TestRefusedByLog: a shard whose log refuses a message is broken off, and opened with another epoch.
func TestRefusedByLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	e := newManual()
	w.alter = func(o *Options) {
		neverLate(o)
		o.Engines, o.Cluster.Shards = e, 1
	}
	w.start("a")
	h := <-e.opened
	r := must.Get(h.Begin(t.Context()))(t)
	h.Refused()
	<-r.Context().Done()
	<-h.Context().Done()
	if again := <-e.opened; again.Epoch() <= h.Epoch() || h.Check() == nil {
		t.Errorf("epoch %d after %d", again.Epoch(), h.Epoch())
	}
}
