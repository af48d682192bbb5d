package config

import "time"

// adaptiveFactor is the default of politeness.adaptive_factor for hosts with a delay: a host that
// takes longer to respond than the delay gets at least as much time to itself as it took.
const adaptiveFactor = 1

// resolveAdaptive puts in force the default of politeness.adaptive_factor, if no source sets it:
// adaptiveFactor for hosts with a delay, and 0 for those without one, whose requests may be in
// flight together.
func (c *Config) resolveAdaptive() {
	if _, set := c.origins["politeness.adaptive_factor"]; set {
		return
	}
	of := func(delay time.Duration) float64 {
		if delay > 0 {
			return adaptiveFactor
		}
		return 0
	}
	p := &c.Politeness
	p.AdaptiveFactor = of(p.Delay)
	for i := range p.Overrides {
		o := &p.Overrides[i]
		if o.Delay == nil || o.AdaptiveFactor != nil {
			continue
		}
		if factor := of(*o.Delay); factor != p.AdaptiveFactor {
			o.AdaptiveFactor = &factor
		}
	}
}
