package crawl

import (
	"time"

	"golang.org/x/time/rate"
)

// rateLimit is a limit of requests a second.
type rateLimit struct {
	perSecond float64
	limiter   *rate.Limiter // nil: no limit
}

// newRateLimit returns a limit of requests a second; 0: none.
func newRateLimit(perSecond float64) rateLimit {
	l := rateLimit{perSecond: perSecond}
	if perSecond > 0 {
		l.limiter = rate.NewLimiter(rate.Limit(perSecond), max(int(perSecond*requestBurst.Seconds()), 1))
	}
	return l
}

// set puts another limit in force. It begins without a burst, so that changes bring no more requests.
func (l *rateLimit) set(perSecond float64, now time.Time) {
	if perSecond == l.perSecond {
		return
	}
	if *l = newRateLimit(perSecond); l.limiter != nil {
		l.limiter.ReserveN(now, l.limiter.Burst())
	}
}

// wait returns when there is one more token than so many; zero: now.
func (l *rateLimit) wait(ahead int, now time.Time) time.Time {
	if l.limiter == nil || l.limiter.TokensAt(now) >= float64(1+ahead) {
		return time.Time{}
	}
	tokens := l.limiter.ReserveN(now, min(1+ahead, l.limiter.Burst()))
	next := now.Add(tokens.DelayFrom(now) + 1) // the limiter rounds down
	tokens.CancelAt(now)
	return next
}

// take takes a token.
func (l *rateLimit) take(now time.Time) {
	if l.limiter != nil {
		l.limiter.AllowN(now, 1)
	}
}

// processLimits are the limits of requests and of received bytes a second. In a cluster they are those of
// all nodes, and this process has a part of them.
type processLimits struct {
	part      float64 // from 0 to 1
	perSecond float64 // requests; 0: no limit
	bandwidth int64   // bytes a second; 0: no limit
	ofHost    func(host string) int64
}

// ratePart is the part of the requests a second.
func (l *processLimits) ratePart() float64 {
	if l.perSecond == 0 {
		return 0
	}
	return max(l.perSecond*l.part, leastRate)
}

// bandwidthPart is the part of the bytes a second.
func (l *processLimits) bandwidthPart() int64 {
	if l.bandwidth == 0 {
		return 0
	}
	return max(int64(float64(l.bandwidth)*l.part), leastBandwidth)
}
