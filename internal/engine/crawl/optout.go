package crawl

import (
	"context"
	"maps"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Opt-outs come from the settings (Live.OptOuts) and from commands, which the database keeps. Those in
// force are part of the scope, which every decision checks. A sweep excludes the URLs that wait, so
// that they are counted as excluded; that none of them is fetched does not depend on it.

// sharedOptOuts are the commanded opt-outs of the engine that has made s, by mark; read-only.
func (s *Shared) sharedOptOuts() map[string]optout.Entry {
	if s == nil || s.optOuts.Load() == nil {
		return nil
	}
	return *s.optOuts.Load()
}

// shareOptOuts puts commanded opt-outs in force for all other engines.
func (s *Shared) shareOptOuts(commanded map[string]optout.Entry) {
	list := maps.Clone(commanded)
	s.optOuts.Store(&list)
}

// optOuts are all opt-outs, in force or not. The dispatcher owns them.
type optOuts struct {
	commanded map[string]optout.Entry  // by mark
	shared    *map[string]optout.Entry // those of Options.Shared as of the last look
	nextEnd   time.Time                // the earliest end of one in force; zero: none ends
}

// restoreOptOuts takes over what an earlier process kept. They are in force in the initial scope.
func (x *exclusions) restoreOptOuts() (err error) {
	if x.optOuts.commanded, err = optouts.Commanded(x.store); err != nil {
		return err
	}
	x.optOuts.nextEnd = x.f.Scope().OptOuts().NextEnd(x.o.Now())
	return nil
}

// refreshOptOuts puts the recorded opt-outs in force: after a change, or when one has ended.
func (x *exclusions) refreshOptOuts() {
	now := x.o.Now()
	list := optouts.List(x.live.Load().OptOuts, x.optOuts.commanded, x.o.Shared.sharedOptOuts()).InForce(now)
	before := x.f.Scope().OptOuts()
	x.optOuts.nextEnd = list.NextEnd(now)
	if !before.Gains(list) && !list.Gains(before) {
		return
	}
	x.setScope(x.f.Scope().WithOptOuts(list))
	if before.Gains(list) {
		x.sweeps.exclude(x.pending)
	}
}

// takeOptOuts puts the opt-outs in force that the engine shares with others, if they have changed.
func (x *exclusions) takeOptOuts() {
	if x.o.Shared == nil || x.o.Shared.optOuts.Load() == x.optOuts.shared {
		return
	}
	x.optOuts.shared = x.o.Shared.optOuts.Load()
	x.refreshOptOuts()
	x.reconsider()
}

// endOptOuts takes opt-outs out of force that have ended.
func (x *exclusions) endOptOuts(now time.Time) {
	if end := x.optOuts.nextEnd; !end.IsZero() && !now.Before(end) {
		x.refreshOptOuts()
		x.reconsider()
	}
}

// changeOptOut records an opt-out, or with remove removes it.
func (x *exclusions) changeOptOut(e optout.Entry, remove bool) error {
	name := marks.OptOut(e.Scope, e.Value)
	if _, known := x.optOuts.commanded[name]; remove && !known {
		return optouts.ErrUnknown(e)
	}
	if remove {
		delete(x.optOuts.commanded, name)
		x.pending.setMark(name, nil)
		x.log.Warn("an opt-out is removed", "scope", string(e.Scope), "value", e.Value)
	} else {
		x.optOuts.commanded[name] = e
		x.pending.setMark(name, optouts.Encode(e))
		x.log.Warn("an opt-out is recorded: nothing it covers is fetched", "scope", string(e.Scope), "value", e.Value,
			"reason", e.Reason, "by", e.By)
	}
	if x.o.Shared == nil {
		x.shared.shareOptOuts(x.optOuts.commanded)
	}
	x.refreshOptOuts()
	x.reconsider()
	return nil
}

// AddOptOut records an opt-out, and returns when that is on disk. It is in force from then on at the
// latest, for the engines that borrow what this one has made too; a request in flight may finish. One of
// the same scope and value is replaced. The error is ErrNotRunning, that of the context, or why it could
// not be committed. Any goroutine may call it.
func (c *commands) AddOptOut(ctx context.Context, entry optout.Entry) error {
	return c.mailbox.Load().submit(ctx, func(d *dispatcher) error { return d.changeOptOut(entry, false) })
}

// RemoveOptOut removes an opt-out that a command recorded, and returns when that is on disk. URLs that
// it excluded go back into their queues in the background. The error is inspect.ErrUnknown, or one of
// AddOptOut. Any goroutine may call it.
func (c *commands) RemoveOptOut(ctx context.Context, scope optout.Scope, value string) error {
	entry := optout.Entry{Scope: scope, Value: value}
	return c.mailbox.Load().submit(ctx, func(d *dispatcher) error { return d.changeOptOut(entry, true) })
}

// OptOut is an opt-out for people.
type OptOut = optouts.OptOut

// OptOuts returns all opt-outs. Any goroutine may call it.
func (v *views) OptOuts() ([]OptOut, error) {
	return optouts.All(v.store, v.live.Load().OptOuts, v.o.Shared.sharedOptOuts(), v.o.Now())
}

// scopeReason says why a URL is in scope or not, with the opt-out that covers it.
func scopeReason(scope *frontier.Scope, u weburl.URL, head *storage.Entry) string {
	if e, is := scope.OptOut(u); is {
		return frontier.OptedOut.String() + ": " + e.String()
	}
	return scope.CheckHead(u, head).String()
}
