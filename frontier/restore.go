package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Restore adds a host of the store when the process starts. The error is that of a politeness that cannot be decoded.
func (f *Frontier) Restore(s *storage.Host, now time.Time) error {
	state, err := politeness.DecodeState(s.Politeness)
	if err != nil {
		return err
	}
	f.readClock(now)
	h := f.hosts.ensure(s.ID)
	if h.fetched = s.Pages(); s.Of(storage.Fetched) > 0 {
		h.lookup = resolved
	}
	f.budgets.restore(h, s)
	if len(s.Politeness) > 0 || !f.restoreFresh(h, now) {
		h.restoreLatency(&state)
		polite := f.restorePoliteness(&f.restored, state, h, now)
		f.gate.tellStored(s.Name, polite)
		if !polite.ReadyUnpaused(now).After(now) {
			polite.HoldFor(now, f.spread(polite.Delay(now)), politeness.ReasonStart)
		}
		f.saveTimes(h, polite, storedWallKind(&state))
	}
	h.backlog = s.Backlog()
	f.budgets.counts.count(h, s.URLs() > 0, s.Of(storage.Queued)+s.Of(storage.Retrying) > 0)
	f.schedule(h, f.instant(now))
	return nil
}

// restoreFresh sets the times of a host without a request. They are the same for all that are restored at an instant,
// but for the spread of their starts. It reports whether that is so.
func (f *Frontier) restoreFresh(h *host, now time.Time) bool {
	p := &f.o.Politeness
	if h.ready != always || h.marks.has(isNew) || f.o.Gate != nil || p.Paused || p.Hours != nil {
		return false
	}
	if f.freshAt != now {
		f.freshAt, f.fresh = now, host{ready: always}
		f.saveTimes(&f.fresh, f.restorePoliteness(&f.restored, politeness.State{}, &f.fresh, now), wall.KindNone)
	}
	h.ready, h.waitReason, h.closed, h.delay = f.fresh.ready, f.fresh.waitReason, f.fresh.closed, f.fresh.delay
	if d := f.spread(p.Delay); d > 0 && h.ready <= f.instant(now) {
		h.ready, h.waitReason = f.instant(now)+instant(d), politeness.ReasonStart
		h.closed = newClosed(wall.KindNone, d > politeness.ParkedAfter)
	}
	return true
}

// restorePoliteness makes polite that of a host of the store: what was committed, at least what this process knows,
// and the restart hold. It returns polite.
func (b *base) restorePoliteness(
	polite *politeness.Host, state politeness.State, h *host, now time.Time,
) *politeness.Host {
	polite.Restore(b.politeness(h), state, now)
	if h.marks.has(isNew) {
		polite.ForgetEnd()
	}
	if known := b.time(h.ready); h.ready != always {
		if h.waitReason.Holds() {
			polite.Trim(known) // so that setting the wall clock back prolongs nothing
		}
		if known.After(polite.ReadyUnpaused(now)) {
			polite.HoldFor(now, known.Sub(now), h.waitReason)
		}
	}
	if !b.o.HeldSince.IsZero() {
		if left := b.o.HeldSince.Add(b.restartHold(polite.Delay(now), state)).Sub(now); left > 0 {
			polite.HoldFor(now, left, politeness.ReasonRestart)
		}
	}
	return polite
}

// restartHold is how long a host is left alone after a crash: its delay in force, and RestartDelay
// at least where no request to it is known, because its robots.txt may demand more.
func (b *base) restartHold(delay time.Duration, state politeness.State) time.Duration {
	if state.LastEnd.IsZero() && !b.o.NoRobots {
		return max(delay, RestartDelay)
	}
	return delay
}

// RestartDelay is the least restart hold of a host whose crawl delay is not known.
const RestartDelay = 10 * time.Second

// saveTimes keeps when a host that is not active may be fetched from. A pause is kept apart from
// the other holds, so that it can end without loading the host. behind is the wall that it is behind.
func (b *base) saveTimes(h *host, polite *politeness.Host, behind wall.Kind) {
	e := polite.Explain(b.clock)
	h.ready, h.waitReason, h.closed = b.instant(e.Unpaused), e.Reason, newClosed(behind, e.Parked)
	h.delay = float32(e.Delay.Seconds())
	if e.Reason == politeness.ReasonPause {
		h.workAt = b.instant(e.Until)
	}
}
