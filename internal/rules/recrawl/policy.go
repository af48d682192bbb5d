package recrawl

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Policy is a way to decide when a page is visited again.
type Policy uint8

// The policies.
const (
	Harmonic     Policy = iota // by estimate, importance and price, so that all pages together match the budget
	Fixed                      // every interval
	Nutch                      // the rule of Nutch's AdaptiveFetchSchedule
	StormCrawler               // the rule of StormCrawler's AdaptiveScheduler
	Never                      // not at all
)

var policyNames = [...]string{"harmonic", "fixed", "nutch", "stormcrawler", "never"}

// String returns the policy's name in the config.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// ParsePolicy is the inverse of Policy.String.
func ParsePolicy(name string) (Policy, error) {
	for i, n := range policyNames {
		if n == name {
			return Policy(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a policy (allowed: %s)", name, strings.Join(policyNames[:], ", "))
}

// Options configure a Plan. Only the budget changes during its life: see Plan.SetBudget.
type Options struct {
	Rule            // for pages without a rule in Rules
	Budget  float64 // visits of known pages a day, those of plain policies included; 0: no limit
	Rules   []Rule  // the first that matches a page counts
	Missing int     // visits in a row without the page, after which it is given up
}

// Rule is a policy and the pages that it applies to.
type Rule struct {
	Hosts    []string       // host names; *.example.com matches all hosts below example.com; none: every host
	Pattern  *regexp.Regexp // of the path and query; nil: any
	Policy   Policy
	Interval time.Duration // of Fixed; for the adaptive rules, the first interval
	Min, Max time.Duration // no wait is shorter, or longer
}

// DefaultOptions returns options that plan by the index, within a budget of 100,000 visits a day.
func DefaultOptions() Options {
	return Options{
		Rule:   Rule{Policy: Harmonic, Interval: 7 * 24 * time.Hour, Min: time.Hour, Max: 180 * 24 * time.Hour},
		Budget: 100_000, Missing: 5,
	}
}

// Validate returns an error that names the invalid options, or nil.
func (o *Options) Validate() error {
	errs := []error{o.Rule.validate("recrawl")}
	for i := range o.Rules {
		errs = append(errs, o.Rules[i].validate(fmt.Sprintf("recrawl: rule %d", i+1)))
	}
	if o.Budget < 0 {
		errs = append(errs, fmt.Errorf("recrawl: Budget is %g, should not be negative", o.Budget))
	}
	if o.Missing < 1 {
		errs = append(errs, fmt.Errorf("recrawl: Missing is %d, should be at least 1", o.Missing))
	}
	return errors.Join(errs...)
}

func (r *Rule) validate(where string) error {
	switch {
	case int(r.Policy) >= len(policyNames):
		return fmt.Errorf("%s: %s is unknown", where, r.Policy)
	case r.Min < time.Second || r.Max < r.Min:
		return fmt.Errorf("%s: waits of %v to %v; the shortest should be at least 1s, the longest no shorter than that",
			where, r.Min, r.Max)
	case r.Policy != Never && r.Interval <= 0:
		return fmt.Errorf("%s: Interval is %v, should be more than 0", where, r.Interval)
	}
	return nil
}

// isFor reports whether the rule applies to a page.
func (r *Rule) isFor(p *Page) bool {
	if r.Pattern != nil && !r.Pattern.MatchString(p.RequestURI) {
		return false
	}
	if len(r.Hosts) == 0 {
		return true
	}
	for _, pattern := range r.Hosts {
		if domain, ok := strings.CutPrefix(pattern, "*"); p.Host == pattern || ok && strings.HasSuffix(p.Host, domain) {
			return true
		}
	}
	return false
}

// rule returns the rule that applies to a page.
func (o *Options) rule(p *Page) *Rule {
	switch {
	case p.Every < 0:
		return &Rule{Policy: Never, Min: o.Min, Max: o.Max}
	case p.Every > 0:
		return &Rule{Policy: Fixed, Interval: p.Every, Min: p.Every, Max: p.Every}
	}
	for i := range o.Rules {
		if o.Rules[i].isFor(p) {
			return &o.Rules[i]
		}
	}
	return &o.Rule
}

// bounds are the bounds of a wait in seconds.
type bounds struct{ least, most float64 }

func (r *Rule) bounds() bounds { return bounds{r.Min.Seconds(), r.Max.Seconds()} }

func (b bounds) clamp(seconds float64) float64 { return min(max(seconds, b.least), b.most) }
