package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/ends"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// ErrNotRunning says that the crawl has not begun yet, or is ending: nothing can be given to it.
var ErrNotRunning = errors.New("the crawl is starting or ending")

// mailbox is where other goroutines reach the dispatcher, which serves them between all else that
// it does. A nil mailbox belongs to a crawl that has not begun. It is safe for concurrent use.
type mailbox struct {
	calls     chan func(*dispatcher) // unbuffered; each is short
	additions chan *addition         // unbuffered; each waits for the commit of the one before
	puts      chan *putGroup         // unbuffered; many share a commit
	closed    chan struct{}          // closed by the dispatcher when it serves nobody any more
	draining  atomic.Bool            // the crawl takes no URLs from outside
}

func newMailbox() *mailbox {
	return &mailbox{
		calls: make(chan func(*dispatcher)), additions: make(chan *addition), puts: make(chan *putGroup),
		closed: make(chan struct{}),
	}
}

// isOpen reports whether a dispatcher serves the mailbox.
func (m *mailbox) isOpen() bool {
	if m == nil {
		return false
	}
	select {
	case <-m.closed:
		return false
	default:
		return true
	}
}

// call has the dispatcher run f, and returns when it has. The error is ErrNotRunning or that of the
// context, and f did not run.
func (m *mailbox) call(ctx context.Context, f func(*dispatcher)) error {
	if m == nil {
		return ErrNotRunning
	}
	done := make(chan struct{})
	select {
	case m.calls <- func(d *dispatcher) { f(d); close(done) }:
		<-done
		return nil
	case <-m.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
}

// submit has the dispatcher run command, and returns when what that changed is on disk. The error
// is that of call, that of command, which then has changed nothing, or why the commit failed. After
// the error of the context the command may be in force.
func (m *mailbox) submit(ctx context.Context, command func(*dispatcher) error) error {
	committed := make(chan error, 1)
	err := m.call(ctx, func(d *dispatcher) {
		if err := command(d); err != nil {
			committed <- err
			return
		}
		d.pending.waiting = append(d.pending.waiting, committed)
	})
	if err != nil {
		return err
	}
	select {
	case err := <-committed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add has an addition committed and waits for that. After an error nobody knows whether it was
// committed.
func (m *mailbox) add(ctx context.Context, a *addition) (lists.Added, error) {
	a.answer = make(chan lists.Added, 1)
	select {
	case m.additions <- a:
	case <-m.closed:
		return lists.Added{}, ErrNotRunning
	case <-ctx.Done():
		return lists.Added{}, ctx.Err()
	}
	select {
	case done := <-a.answer:
		return done, done.Err
	case <-ctx.Done():
		return lists.Added{}, ctx.Err()
	}
}

// additions returns the channel that the next addition comes from; nil while one waits for its
// commit.
func (b *batching) additions(m *mailbox) <-chan *addition {
	if b.addition != nil {
		return nil
	}
	return m.additions
}

// refuseAll turns away whoever comes to the mailbox now, and the addition that no commit has taken.
func (b *batching) refuseAll(m *mailbox) {
	close(m.closed)
	if b.addition != nil {
		b.addition.answer <- lists.Added{Err: ErrNotRunning}
		b.addition = nil
	}
}

// answerAddition tells whoever added URLs what their commit did.
func (b *batch) answerAddition() {
	if b.addition == nil {
		return
	}
	if b.err != nil {
		b.addition.answer <- lists.Added{Err: fmt.Errorf("commit the URLs: %w", b.err)}
		return
	}
	b.addition.answer <- lists.Added{Results: b.rows.InsertResults, Changed: b.result.Changed, Took: b.took}
}

// ErrDraining says that a crawl takes no more URLs because it is to end when it is done.
var ErrDraining = errors.New("the crawl is draining: it takes no more URLs")

// Control applies a command to one host, and returns when that is on disk. A request in flight when
// a pause begins is not broken off. The error is inspect.ErrUnknown if the host is not known,
// ErrNotRunning, that of the context, or why the command could not be committed. Any goroutine may
// call it.
func (c *commands) Control(ctx context.Context, host string, o frontier.Command) error {
	if host == "" {
		return fmt.Errorf("a host without a name: %w", inspect.ErrUnknown)
	}
	return c.mailbox.Load().submit(ctx, func(d *dispatcher) error { return d.controlHost(host, o) })
}

// Pause lets no request begin until Resume, in this run and those to come. It returns when that is
// on disk. Any goroutine may call it; the errors are those of Control.
func (c *commands) Pause(ctx context.Context) error { return c.setPaused(ctx, true) }

// Resume ends a Pause. Any goroutine may call it; the errors are those of Control.
func (c *commands) Resume(ctx context.Context) error { return c.setPaused(ctx, false) }

func (c *commands) setPaused(ctx context.Context, paused bool) error {
	return c.mailbox.Load().submit(ctx, func(d *dispatcher) error {
		d.setPaused(paused)
		return nil
	})
}

// Drain makes the crawl end when it is done with all that it knows and what that leads to, as with
// ExitWhenDone; on false it goes on as before. Until then it takes no URLs from outside. Any
// goroutine may call it. The error is ErrNotRunning, or that of the context.
func (c *commands) Drain(ctx context.Context, on bool) error {
	return c.mailbox.Load().call(ctx, func(d *dispatcher) { d.setEnd(false, on) })
}

// Stop makes Run end as if its context had ended: requests in flight may finish within
// Live.ShutdownGrace. It returns at once. Any goroutine may call it; the errors are those of Drain.
func (c *commands) Stop(ctx context.Context) error {
	return c.mailbox.Load().call(ctx, func(d *dispatcher) { d.setEnd(true, false) })
}

// Change puts live options in force, all at once, and returns when they are. A request in flight
// ends as it began; fewer workers means that no request begins until enough have ended. The error
// says what is wrong with the options, or is ErrNotRunning or that of the context. Any goroutine
// may call it.
func (e *Engine) Change(ctx context.Context, l Live) error {
	if err := e.o.With(l).Validate(); err != nil {
		return err
	}
	m := e.mailbox.Load()
	if m == nil {
		return ErrNotRunning
	}
	overridden, err := e.overridden(l.Overrides)
	if err != nil {
		return fmt.Errorf("find the hosts of overrides: %w", err)
	}
	return m.call(ctx, func(d *dispatcher) { d.change(l, overridden) })
}

// overridden finds the hosts that overrides name, each with the index of its override.
func (e *Engine) overridden(list []frontier.Override) (map[storage.HostID]int, error) {
	found, find := make(map[storage.HostID]int), frontier.FindOverride(list)
	for i := range list {
		for _, pattern := range list[i].Hosts {
			under, below := strings.CutPrefix(pattern, "*.")
			err := e.store.Names(under, "", func(name string, id storage.HostID) error {
				if j := find(name); j >= 0 {
					found[id] = j
				}
				if !below {
					return storage.ErrStop // the name itself comes first
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// change puts live options in force.
func (pm *permits) change(l Live, overridden map[storage.HostID]int) {
	if pm.keptDelay != nil {
		l.Politeness.Delay = *pm.keptDelay
	}
	force := newInForce(pm.o, l)
	pm.live.Store(force)
	force.limitBandwidth(pm.shared)
	pm.quota.Change(l.quota(), pm.o.Now())
	pm.setScope(pm.f.Scope().WithExpressions(l.Include, l.Exclude))
	pm.refreshOptOuts()
	pm.f.Change(frontier.Change{
		Live: l.Live, Workers: l.Workers, Overridden: overridden,
	}, pm.o.Now())
	pm.reconsider()
}

// setScope puts a scope in force.
func (g *gathering) setScope(scope *frontier.Scope) {
	g.f.SetScope(scope)
	g.scope.Store(scope)
}

// phase is how far a run has come, by what the operator commanded and by what happened. The
// dispatcher owns it.
type phase struct {
	draining     bool      // by the operator: the crawl ends when all is done
	stopped      bool      // by the operator
	pausedSince  time.Time // by the operator; zero: it is not
	shuttingDown bool      // no request begins any more
	failed       error     // the end of the crawl
	limits       ends.Limits
	end          End // empty: it is not over
}

// fail ends the crawl, unless err is nil; the first error counts.
func (p *phase) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// goesOn reports whether requests may begin, now or after a pause.
func (p *phase) goesOn() bool { return p.failed == nil && !p.stopped }

// pause pauses the crawl, or ends that. It returns the value of the mark.
func (p *phase) pause(on bool, now time.Time) (mark []byte) {
	if !on {
		p.pausedSince = time.Time{}
		return nil
	}
	if p.pausedSince.IsZero() {
		p.pausedSince = now
	}
	mark, _ = p.pausedSince.MarshalBinary() // fails for zones with seconds only; Local and UTC have none
	return mark
}

// restorePause takes over the mark of an earlier process that was paused and not resumed.
func (p *phase) restorePause(mark []byte) error {
	if len(mark) == 0 {
		return nil
	}
	if err := p.pausedSince.UnmarshalBinary(mark); err != nil {
		return fmt.Errorf("mark %s: %w", marks.Paused, err)
	}
	return nil
}

// setEnd sets whether the crawl ends now, or when it is done.
func (oc *outcomes) setEnd(stop, drain bool) {
	if stop || drain != oc.draining {
		oc.log.Info("the operator commands the crawl", "stop", stop, "drain", drain)
	}
	oc.stopped, oc.draining = stop, drain
	oc.mailbox.draining.Store(drain)
	oc.report("running")
}

// endsWhenDone reports whether the crawl is over when all is done.
func (g *gathering) endsWhenDone() bool { return g.draining || g.live.Load().ExitWhenDone }

// setPaused pauses the whole crawl, or ends that.
func (oc *outcomes) setPaused(paused bool) {
	oc.pending.setMark(marks.Paused, oc.pause(paused, oc.o.Now()))
	oc.log.Info("the operator pauses or resumes the crawl", "paused", paused)
	oc.report("running")
}

// controlHost applies a command to one host. It reads the host's row, and its robots records if
// the command forgets them.
func (g *gathering) controlHost(name string, o frontier.Command) error {
	host, err := g.store.HostByName(name)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("host %s: %w", name, inspect.ErrUnknown)
	}
	if err != nil {
		return err
	}
	var records []robots.Record
	if o.Kind == frontier.CommandForget {
		if records, err = robotsRecords(g.store, &host); err != nil {
			return err
		}
	}
	if err := g.f.Control(&host, records, o, g.o.Now()); err != nil {
		return err
	}
	if o.Kind == frontier.CommandForget {
		g.mazes.Forget(name)
		g.pending.setMark(maze.Mark+name, nil)
	}
	attributes := []any{"host", name, "order", o.Kind.String()}
	if !o.Until.IsZero() {
		attributes = append(attributes, "until", o.Until)
	}
	if o.Kind == frontier.CommandDelay {
		attributes = append(attributes, "delay", o.Delay)
	}
	g.log.Info("the operator controls a host", attributes...)
	return nil
}

// robotsRecords returns the robots records of all origins of a host, the zero Record for one that
// cannot be read.
func robotsRecords(s load.RulesStore, host *storage.Host) ([]robots.Record, error) {
	records := make([]robots.Record, len(host.Queues))
	for i := range host.Queues {
		encoded, err := s.Policy(host.Queues[i].Origin)
		if err != nil {
			return nil, err
		}
		if record, err := robots.DecodeRecord(encoded); err == nil {
			records[i] = record
		}
	}
	return records, nil
}
