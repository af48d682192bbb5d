package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Opt-outs come from the settings (Live.OptOuts) and from commands, which the database keeps. Those in
// force are part of the scope, which every decision checks. A sweep excludes the URLs that wait, so
// that they are counted as excluded; that none of them is fetched does not depend on it.

// markReader reads marks.
type markReader interface {
	Marks(prefix string) (map[string][]byte, error)
}

// CommandedOptOuts reads the opt-outs that commands recorded, by mark.
func CommandedOptOuts(s markReader) (map[string]optout.Entry, error) {
	found, err := s.Marks(marks.OptOuts)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]optout.Entry, len(found))
	for name, value := range found {
		var e optout.Entry
		if err := json.Unmarshal(value, &e); err != nil {
			return nil, fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		entries[name] = e
	}
	return entries, nil
}

// listOptOuts makes a list of configured and commanded opt-outs.
func listOptOuts(configured []optout.Entry, commanded ...map[string]optout.Entry) *optout.List {
	entries := append([]optout.Entry(nil), configured...)
	for _, list := range commanded {
		for _, e := range list {
			entries = append(entries, e)
		}
	}
	return optout.NewList(entries...)
}

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

// SetOptOuts puts opt-outs in force for all engines that borrow what s has, those that are opened later
// included, in place of those of an earlier call. An engine has them when Engine.TakeOptOuts has returned,
// or within a second. It is for a Shared of OpenShared.
func (s *Shared) SetOptOuts(entries []optout.Entry) {
	list := make(map[string]optout.Entry, len(entries))
	for _, e := range entries {
		list[marks.OptOut(e.Scope, e.Value)] = e
	}
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
	if x.optOuts.commanded, err = CommandedOptOuts(x.store); err != nil {
		return err
	}
	x.optOuts.nextEnd = x.f.Scope().OptOuts().NextEnd(x.o.Now())
	return nil
}

// refreshOptOuts puts the recorded opt-outs in force: after a change, or when one has ended.
func (x *exclusions) refreshOptOuts() {
	now := x.o.Now()
	list := listOptOuts(x.live.Load().OptOuts, x.optOuts.commanded, x.o.Shared.sharedOptOuts()).InForce(now)
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
	x.collect()
}

// endOptOuts takes opt-outs out of force that have ended.
func (x *exclusions) endOptOuts(now time.Time) {
	if end := x.optOuts.nextEnd; !end.IsZero() && !now.Before(end) {
		x.refreshOptOuts()
		x.reconsider()
		x.collect()
	}
}

// changeOptOut records an opt-out, or with remove removes it.
func (x *exclusions) changeOptOut(e optout.Entry, remove bool) error {
	name := marks.OptOut(e.Scope, e.Value)
	if _, known := x.optOuts.commanded[name]; remove && !known {
		return errNoOptOut(e)
	}
	if remove {
		delete(x.optOuts.commanded, name)
		x.pending.setMark(name, nil)
		x.log.Warn("an opt-out is removed", "scope", string(e.Scope), "value", e.Value)
	} else {
		x.optOuts.commanded[name] = e
		x.pending.setMark(name, encodeOptOut(e))
		x.log.Warn("an opt-out is recorded: nothing it covers is fetched", "scope", string(e.Scope), "value", e.Value,
			"reason", e.Reason, "by", e.By)
	}
	if x.o.Shared == nil {
		x.share.of.shareOptOuts(x.optOuts.commanded)
	}
	x.refreshOptOuts()
	x.reconsider()
	x.collect()
	return nil
}

func encodeOptOut(e optout.Entry) []byte {
	b, _ := json.Marshal(e) // of texts and times
	return b
}

func errNoOptOut(e optout.Entry) error {
	return fmt.Errorf("opt-out of %s %s that a command recorded: %w", e.Scope, e.Value, inspect.ErrUnknown)
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

// TakeOptOuts returns when what Shared.SetOptOuts has set is in force. The error is ErrNotRunning, or that
// of the context. Any goroutine may call it.
func (c *commands) TakeOptOuts(ctx context.Context) error {
	return c.mailbox.Load().call(ctx, (*dispatcher).takeOptOuts)
}

// OptOut is an opt-out for people.
type OptOut struct {
	optout.Entry
	InForce bool   `json:"in_force"` // it has not ended
	Source  string `json:"source"`   // command, or consent.optout
}

// OptOuts returns all opt-outs. Any goroutine may call it.
func (v *views) OptOuts() ([]OptOut, error) {
	return allOptOuts(v.store, v.live.Load().OptOuts, v.o.Shared.sharedOptOuts(), v.o.Now())
}

// StoredOptOuts is Engine.OptOuts for a crawl that does not run.
func StoredOptOuts(s *storage.Store, o Options) ([]OptOut, error) {
	return allOptOuts(s, o.OptOuts, nil, time.Now())
}

// allOptOuts lists them by scope and value.
func allOptOuts(s markReader, configured []optout.Entry, shared map[string]optout.Entry, now time.Time) (
	[]OptOut, error,
) {
	commanded, err := CommandedOptOuts(s)
	if err != nil {
		return nil, err
	}
	maps.Copy(commanded, shared)
	list := []OptOut{}
	for _, e := range listOptOuts(configured, commanded).All() {
		source := "consent.optout"
		if _, is := commanded[marks.OptOut(e.Scope, e.Value)]; is {
			source = "command"
		}
		list = append(list, OptOut{Entry: e, InForce: e.InForce(now), Source: source})
	}
	return list, nil
}

// OptOutKeeper records opt-outs of a crawl that does not run.
type OptOutKeeper struct{ *offline }

// OpenOptOuts opens the store in o.DataDir, and makes one if there is none. The errors of storage.Open
// come through.
func OpenOptOuts(o Options) (*OptOutKeeper, error) {
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	return &OptOutKeeper{f}, nil
}

// AddOptOut is Engine.AddOptOut.
func (k *OptOutKeeper) AddOptOut(_ context.Context, e optout.Entry) error {
	b := storage.Batch{Marks: map[string][]byte{marks.OptOut(e.Scope, e.Value): encodeOptOut(e)}}
	if _, err := k.commit(&b); err != nil {
		return fmt.Errorf("record the opt-out: %w", err)
	}
	return nil
}

// RemoveOptOut is Engine.RemoveOptOut; the next run puts the URLs back.
func (k *OptOutKeeper) RemoveOptOut(_ context.Context, scope optout.Scope, value string) error {
	name := marks.OptOut(scope, value)
	if encoded, err := k.store.Mark(name); err != nil || encoded == nil {
		return errors.Join(err, errNoOptOut(optout.Entry{Scope: scope, Value: value}))
	}
	if _, err := k.commit(&storage.Batch{Marks: map[string][]byte{name: nil}}); err != nil {
		return fmt.Errorf("remove the opt-out: %w", err)
	}
	return nil
}

// scopeReason says why a URL is in scope or not, with the opt-out that covers it.
func scopeReason(scope *frontier.Scope, u weburl.URL, from seeds.Ref) string {
	if e, is := scope.OptOut(u); is {
		return frontier.OptedOut.String() + ": " + e.String()
	}
	return scope.Check(u, from).String()
}

// hostOptOut returns the opt-out that covers all of a host or its address, for people; empty: there is
// none. A nil scope is that of a crawl that has not begun.
func hostOptOut(scope *frontier.Scope, host, address string) string {
	if scope == nil {
		return ""
	}
	e, is := scope.OptOuts().Host(host, time.Time{})
	if addr, err := netip.ParseAddr(address); !is && err == nil {
		e, is = scope.OptOuts().Addr(addr, time.Time{})
	}
	if !is {
		return ""
	}
	return e.String()
}
