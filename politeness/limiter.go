package politeness

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// pace is a limiter of burst 1 whose only token is taken at the end of each request. The zero value is that of
// nothing that was ever asked.
type pace struct {
	limiter *rate.Limiter // nil while there is no delay to keep
	end     time.Time     // of the last request; zero before the first
	refill  time.Duration // from then until the limiter has its token again
}

// ended takes note of a request that ended. Requests may end in any order.
func (p *pace) ended(end time.Time, delay time.Duration) {
	if end.After(p.end) {
		p.end = end
	}
	p.charge(delay)
}

// charge sets the rate and takes the token at the end of the last request. Nothing refills in no
// time, so doing it again changes nothing but the rate.
func (p *pace) charge(delay time.Duration) {
	p.refill = 0
	switch {
	case p.end.IsZero():
		return
	case delay <= 0:
		p.limiter = nil
		return
	case p.limiter == nil:
		p.limiter = rate.NewLimiter(rate.Every(delay), 1)
	default:
		p.limiter.SetLimitAt(p.end, rate.Every(delay))
	}
	p.limiter.AllowN(p.end, 1)
	// Rounded up to a nanosecond. More than the token is never missing, rounding apart.
	missing := min(1-p.limiter.TokensAt(p.end), 1)
	p.refill = saturate(math.Ceil(max(missing, 0) * float64(delay)))
}

// ready is the earliest instant of the next request: the zero time before the first.
func (p *pace) ready(delay time.Duration) time.Time {
	if p.end.IsZero() || delay <= 0 {
		return p.end
	}
	return p.end.Add(max(delay, p.refill))
}

// saturate converts nanoseconds to a duration; what does not fit becomes the longest one.
func saturate(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanoseconds)
}
