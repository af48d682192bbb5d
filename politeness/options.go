package politeness

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrOption is wrapped by every error of [Options.Validate].
var ErrOption = errors.New("politeness: bad option")

// Options are the limits that the operator of the crawler sets. They must not change while a [Host]
// uses them. A host with limits of its own gets an Options of its own.
type Options struct {
	// Delay is the least time between the end of a request to a host and the start of the next.
	// Zero leaves the pace to the host: its Crawl-delay and its failures.
	Delay time.Duration
	// AdaptiveFactor makes the delay at least this many times the duration of the last request.
	// Zero: off.
	AdaptiveFactor float64
	// AdaptiveMax is the longest delay that AdaptiveFactor can cause.
	AdaptiveMax time.Duration
	// PerHost is the number of requests in flight to a host whose delay in force is zero. Other
	// hosts have one.
	PerHost int
	// Bandwidth is how many bytes a second of a host's responses may be received, by whoever makes the
	// requests. Zero: no limit.
	Bandwidth int64
	// Paused stops all requests to hosts with these options.
	Paused bool
	// Hours are those at which requests are allowed; nil: all of them. A Visit-time of robots.txt has
	// to allow them as well.
	Hours *Hours
	// Setting is the name of Delay and Paused in the settings, for reports.
	Setting string
	// PerIP is the number of requests in flight to an address, over all hosts. It is one if IPDelay
	// is not zero.
	PerIP int
	// IPDelay is the least time between the end of a request to an address and the start of the
	// next.
	IPDelay time.Duration
	// IPRate is the requests a second that an address gets at first, over all hosts. They become more
	// while it serves them well: see [Budget]. Zero: there is no such budget.
	IPRate float64
}

// DefaultOptions returns the options of an empty configuration.
func DefaultOptions() Options {
	return Options{
		Delay:       time.Second,
		AdaptiveMax: time.Minute,
		PerHost:     1,
		PerIP:       4,
	}
}

// Validate returns nil, or an error that names every invalid value and what is allowed, by the
// names of the configuration. The error wraps [ErrOption].
func (o Options) Validate() error {
	var errs []error
	refuse := func(name string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("%w: %s is %v, allowed is %s", ErrOption, name, value, allowed))
	}
	if o.Delay < 0 {
		refuse("delay", o.Delay, "0s or more")
	}
	if !(o.AdaptiveFactor >= 0) || math.IsInf(o.AdaptiveFactor, 0) {
		refuse("adaptive_factor", o.AdaptiveFactor, "0 (off) or a positive number")
	}
	if o.AdaptiveMax < 0 || o.AdaptiveMax == 0 && o.AdaptiveFactor > 0 {
		refuse("adaptive_max", o.AdaptiveMax, "more than 0s")
	}
	if o.Bandwidth < 0 {
		refuse("host_bandwidth", o.Bandwidth, "0 (no limit) or more")
	}
	if o.PerHost < 1 {
		refuse("per_host", o.PerHost, "1 or more")
	}
	if o.PerIP < 1 {
		refuse("per_ip", o.PerIP, "1 or more")
	}
	if o.IPDelay < 0 {
		refuse("ip_delay", o.IPDelay, "0s or more")
	}
	if !(o.IPRate >= 0 && o.IPRate <= MaxRate) {
		refuse("ip_rate", o.IPRate, fmt.Sprintf("0 (no budget) to %d", MaxRate))
	}
	return errors.Join(errs...)
}

// Address returns the limit of one IP address.
func (o Options) Address() LimitOptions {
	return LimitOptions{InFlight: o.PerIP, Delay: o.IPDelay, Rate: o.IPRate}
}
