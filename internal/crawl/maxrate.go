package crawl

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/frontier"
)

// maxRate limits the requests a second of the whole crawl: pages and robots.txt files, as they are
// handed to workers. The dispatcher owns it.
type maxRate struct {
	perSecond float64
	limiter   *rate.Limiter // nil: no limit
	next      time.Time     // the earliest instant of the next request, as of the last one that had to wait

	scarce bool          // hosts were due when a request had to wait: requests are scarce, workers are not
	since  time.Time     // when a host that is due began to wait; zero: none does
	waited time.Duration // in which hosts were due and the limit held them
}

// requestBurst is the time whose requests may be handed out at once, one at least.
const requestBurst = 100 * time.Millisecond

// newMaxRate returns a limit of requests a second; 0: none.
func newMaxRate(perSecond float64) maxRate {
	m := maxRate{perSecond: perSecond}
	if perSecond > 0 {
		m.limiter = rate.NewLimiter(rate.Limit(perSecond), max(int(perSecond*requestBurst.Seconds()), 1))
	}
	return m
}

// validateMaxRate returns an error for what is no rate.
func validateMaxRate(perSecond float64) error {
	if !(perSecond >= 0) || math.IsInf(perSecond, 0) {
		return fmt.Errorf("crawl: MaxRate is %g, should be 0 (no limit) or more", perSecond)
	}
	return nil
}

// set puts another limit in force. It begins without a burst, so that changes bring no more requests.
func (m *maxRate) set(perSecond float64, now time.Time) {
	if perSecond == m.perSecond {
		return
	}
	waited := m.total(now)
	*m = newMaxRate(perSecond)
	if m.waited = waited; m.limiter != nil {
		m.limiter.ReserveN(now, m.limiter.Burst())
	}
}

// allows reports whether a request may be handed out now, and notes when the next one may otherwise.
func (m *maxRate) allows(now time.Time) bool {
	if m.limiter == nil || m.limiter.TokensAt(now) >= 1 {
		return true
	}
	token := m.limiter.ReserveN(now, 1)
	m.next = now.Add(token.DelayFrom(now) + 1) // the limiter rounds down
	token.CancelAt(now)
	return false
}

// took takes note of a lease that was handed out. A match makes no request.
func (m *maxRate) took(l *frontier.Lease, now time.Time) {
	if m.limiter != nil && l.Kind != frontier.Match {
		m.limiter.AllowN(now, 1)
	}
}

// hold takes note of whether hosts that are due wait for the limit.
func (m *maxRate) hold(held bool, now time.Time) {
	switch {
	case held && m.since.IsZero():
		m.since = now
	case !held && !m.since.IsZero():
		m.waited += now.Sub(m.since)
		m.since = time.Time{}
	}
}

// idle takes note that workers are what the crawl waits for, or that nothing may be handed out at all.
func (m *maxRate) idle(now time.Time) {
	m.scarce = false
	m.hold(false, now)
}

// total is for how long hosts that were due have waited for the limit.
func (m *maxRate) total(now time.Time) time.Duration {
	if m.since.IsZero() {
		return m.waited
	}
	return m.waited + now.Sub(m.since)
}

// nextLease takes the next request from the frontier, if the limit of the crawl allows one.
func (d *dispatcher) nextLease(now time.Time) (l frontier.Lease, ok bool) {
	m := &d.maxRate
	if !m.allows(now) {
		at, waits := d.f.NextWake()
		m.scarce = waits && !at.After(now)
		m.hold(m.scarce, now)
		return l, false
	}
	m.hold(false, now)
	if m.scarce {
		l, ok = d.f.NextInTurn(now)
	} else {
		l, ok = d.f.Next(now)
	}
	m.scarce = m.scarce && ok
	return l, ok
}
