package politeness

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// pace is the limiter that keeps the gap between two requests. It is the only place where that gap
// is computed. Its bucket holds one token and is emptied at the end of each request, so the next
// request starts when the limiter grants a token again. The zero value belongs to a host or a limit
// to which no request was made.
type pace struct {
	limiter *rate.Limiter // nil while there is no delay to keep
	end     time.Time     // of the last request; zero before the first
	gap     time.Duration // from end until the limiter grants the next token
}

// ended records a request that ended. Requests may end in any order.
func (p *pace) ended(end time.Time, delay time.Duration) {
	if end.After(p.end) {
		p.end = end
	}
	p.charge(delay)
}

// charge puts a delay in force, as of the end of the last request.
func (p *pace) charge(delay time.Duration) {
	p.gap = 0
	if p.end.IsZero() || delay <= 0 {
		p.limiter = nil
		return
	}
	limit := every(delay)
	if p.limiter == nil {
		p.limiter = rate.NewLimiter(limit, 1)
	}
	if p.limiter.Limit() != limit {
		p.limiter.SetLimitAt(p.end, limit)
	}
	if !p.limiter.AllowN(p.end, 1) { // a part of a token is in it, which must not shorten the gap
		p.limiter.SetBurstAt(p.end, 0)
		p.limiter.SetBurstAt(p.end, 1)
	}
	next := p.limiter.ReserveN(p.end, 1)
	p.gap = neverEarly(next.DelayFrom(p.end))
	next.CancelAt(p.end) // the token is the next request's, whose end empties the bucket
}

// ready returns the earliest instant of the next request, or the zero time before the first.
func (p *pace) ready() time.Time { return p.end.Add(p.gap) }

// every returns the rate of a delay. It rounds the delay up to whole microseconds, so that
// neverEarly can restore it from the limiter's answer. A delay of more than 146 years has the rate
// 0: the limiter never grants its token.
func every(delay time.Duration) rate.Limit {
	if delay > math.MaxInt64/2 {
		return 0
	}
	return rate.Every((delay + time.Microsecond - 1).Truncate(time.Microsecond))
}

// neverEarly corrects the answer of a limiter, whose rate is a floating-point number, to the whole
// microsecond. The answer to a delay of up to 200 days is wrong by 16 ns at most; for longer ones,
// a margin grows with the error.
func neverEarly(answer time.Duration) time.Duration {
	margin := answer >> 50
	if answer > math.MaxInt64-margin-time.Microsecond {
		return math.MaxInt64
	}
	return (answer + margin).Round(time.Microsecond)
}

// saturate converts nanoseconds to a duration; what does not fit becomes the longest one.
func saturate(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanoseconds)
}
