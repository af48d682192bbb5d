package recrawl

import (
	"math"
	"sync/atomic"
	"time"
)

// Plan plans visits. One goroutine owns it; others may only call Notice, Plans and Budget at the
// same time.
type Plan struct {
	o      Options
	budget atomic.Uint64 // bits of the visits a day that may be made; Options.Budget at first
	census census
	price  float64 // seconds; computed for a recent state of the census
	priced uint64  // changes of the census since
	yield  Yield
	trim   float64 // logarithm of the part of the budget that the price aims at
}

// Page is the fixed part of a page.
type Page struct {
	Host       string
	RequestURI string // path and query
	Priority   int8
	Depth      uint16
	Claimed    time.Duration // time between changes by a sitemap; 0: none
	Every      time.Duration // of its seed, in place of the rules; negative: never; 0: the rules count
}

// Memory is the part of a page that is kept between visits.
type Memory struct {
	At      time.Time // of the last attempt; zero: none
	Due     time.Time // of the next visit; zero: none is planned
	History History
}

// Change is the result of a visit.
type Change uint8

// The results of a visit.
const (
	First   Change = iota // the first visit: there is nothing to compare with
	Same                  // as at the visit before
	Changed               // not as at the visit before
)

// Visit is a visit of a page that has ended.
type Visit struct {
	Page
	Memory             // before the visit
	At       time.Time // when it ended
	Change   Change
	Modified time.Time // Last-Modified; zero: not known
	Expires  time.Time // the page demands not to be fetched from then on; zero: no demand
	// Fresh is how long the response says that it can be used, from At on: no visit is planned sooner,
	// unless the interval is fixed. It counts for Rule.Max at most.
	Fresh      time.Duration
	Bytes      uint64 // of the body received
	TimesGone  int    // visits in a row before this one that did not find the page
	GoneForAll bool   // the response says that the page will not come back
	Requisite  bool   // it is no page, but what one is made of: a Yield counts pages
}

// New returns a plan without pages.
func New(o Options) (*Plan, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{o: o, price: float64(expectedSeconds)}
	p.SetBudget(o.Budget)
	return p, nil
}

// Plans reports whether a page is visited again at all. Any goroutine may call it.
func (p *Plan) Plans(page *Page) bool { return p.o.rule(page).Policy != Never }

// expectedSeconds is the expected time between changes while nothing is known.
const expectedSeconds = 14 * perDay

// Budget returns the number of visits a day that may be made; 0: no limit.
func (p *Plan) Budget() float64 { return math.Float64frombits(p.budget.Load()) }

// LeastBudget is the budget of a plan that has no part of one, because 0 means no limit. The plan keeps its
// price then.
const LeastBudget = 1e-9

// SetBudget changes the number of visits a day that may be made; 0: no limit.
func (p *Plan) SetBudget(perDay float64) {
	p.budget.Store(math.Float64bits(perDay))
	p.priced = math.MaxUint32 // compute the price again
}

// Answered plans the next visit of a page, after a visit that brought the page or the answer that
// it has not changed. It records what the visit says about the site.
func (p *Plan) Answered(v *Visit, s *Site) Memory {
	rule := p.o.rule(&v.Page)
	p.forget(v, s, rule, v.TimesGone > 0)
	p.countYield(v, s, false)
	m := Memory{At: v.At}
	wait := rule.Interval
	switch rule.Policy {
	case Never:
		return m
	case Harmonic:
		m.History, wait = p.harmonic(v, s, rule)
	case Fixed:
		wait = min(max(wait, rule.Min), rule.Max)
		m.History = plainHistory(wait)
	default:
		if v.Memory.History.isPlain() {
			wait = v.Memory.History.interval()
		}
		keep := wait
		if rule.Policy == Nutch {
			keep, wait = nutch(wait, v, rule)
		} else {
			wait = stormcrawler(wait, v, rule)
			keep = wait
		}
		m.History = plainHistory(keep)
	}
	if rule.Policy != Fixed {
		wait = max(wait, min(v.Fresh, rule.Max))
	}
	m.Due = v.At.Add(wait)
	if !v.Expires.IsZero() && !m.Due.Before(v.Expires) {
		return Memory{At: v.At}
	}
	p.count(v, s, m.History)
	return m
}

// harmonic plans a visit by the index.
func (p *Plan) harmonic(v *Visit, s *Site, rule *Rule) (History, time.Duration) {
	h := v.learn()
	rate := h.estimate(s.prior(p.expected()))
	h = h.planned(rate.mean())
	if !h.observed() {
		rate = rate.claimed(v.Claimed)
	}
	weight := ImportanceOf(v.Priority, v.Depth).Weight()
	wait := rule.bounds().clamp(indexWait(rate, weight, p.currentPrice()))
	return h, time.Duration(wait * float64(time.Second))
}

// learn returns the history with the observation of a visit.
func (v *Visit) learn() History {
	h := v.Memory.History
	age := v.At.Sub(v.Modified)
	dated := !v.Modified.IsZero() && age >= leastAge
	since := h.awaited() + max(v.At.Sub(v.Memory.At), 0).Seconds()
	switch {
	case v.Change == Same:
		return h.observe(unchanged, since)
	case v.Change == First && dated:
		return h.observe(exact, age.Seconds())
	case v.Change == First:
		return History{}
	case dated && age.Seconds() < since:
		return h.observe(exact, age.Seconds())
	}
	return h.observe(changed, since)
}

// leastAge is the least age of a page by its Last-Modified that is believed: pages that are made
// for each request often carry the time of the request.
const leastAge = time.Minute

// expected returns the expected level of a page when nothing is known of it and its host.
func (p *Plan) expected() float64 {
	return (float64(p.census.levels) + doubt*float64(levelOf(expectedSeconds))) / (float64(p.census.pages) + doubt)
}

// Gone plans another visit of a page that no longer exists, later each time. It plans none after
// Options.Missing of them, or if the response says that the page will not come back.
func (p *Plan) Gone(v *Visit, s *Site) Memory {
	rule := p.o.rule(&v.Page)
	p.forget(v, s, rule, false)
	p.countYield(v, s, true)
	m := Memory{At: v.At, History: v.elapsed()}
	if rule.Policy == Never || v.GoneForAll || v.TimesGone+1 >= p.o.Missing {
		return m
	}
	m.Due = v.At.Add(rule.goneWait(v.TimesGone+1, v.Claimed))
	return m
}

// Unanswered takes a page off the plan that could not be fetched, or may not be fetched. The caller
// decides when it is fetched again. It returns the history to keep.
func (p *Plan) Unanswered(v *Visit, s *Site) History {
	p.forget(v, s, p.o.rule(&v.Page), false)
	return v.elapsed()
}

// elapsed returns the history after an attempt that brought no page.
func (v *Visit) elapsed() History {
	since := 0.0
	if !v.Memory.At.IsZero() {
		since = v.At.Sub(v.Memory.At).Seconds()
	}
	return v.Memory.History.Defer(since)
}

// forget subtracts a page from census and site. If its visit was brought forward, forget records
// whether the notice was true: the page has changed, or is back.
func (p *Plan) forget(v *Visit, s *Site, rule *Rule, back bool) {
	if v.Memory.History.Noticed() || rule.broughtForward(v.Memory, v.TimesGone, v.Claimed) {
		s.countNotice(v.Change == Changed || back)
	}
	p.census.remove(v.Memory.History, ImportanceOf(v.Priority, v.Depth))
	s.remove(v.Memory.History)
	p.priced++
}

func (p *Plan) countYield(v *Visit, s *Site, gone bool) {
	p.yield.count(v, gone)
	s.yield.count(v, gone)
}

func (p *Plan) count(v *Visit, s *Site, h History) {
	p.census.add(h, ImportanceOf(v.Priority, v.Depth))
	s.add(h)
	p.priced++
}

// repriceAfter is the part of the pages that must be planned again before the price is computed
// again.
const repriceAfter = 1.0 / 16

// currentPrice returns the price. It computes it again when the census has changed enough.
func (p *Plan) currentPrice() float64 {
	if budget := p.Budget(); budget != LeastBudget && float64(p.priced) > repriceAfter*float64(p.census.pages) {
		p.priced = 0
		p.price = p.priceAt(budget * math.Exp(p.trim))
	}
	return p.price
}

// priceAt returns the price at which all visits together match a number a day. Visits of plain
// policies are subtracted, up to nine tenths of the number.
func (p *Plan) priceAt(perDayVisits float64) float64 {
	if perDayVisits == 0 {
		return cheapest
	}
	visits := perDayVisits / perDay
	visits = max(visits-float64(p.census.fixed)/fixedUnit, visits/10)
	return p.census.price(visits, p.price, p.o.bounds())
}

// The price follows the real effect of the budget: retries, pages that are gone and slow hosts are
// not in the census. trimStep is how far one round of all pages moves the price if there was room
// for twice as many recrawls, or if each of them was late by its whole wait.
const (
	trimStep  = 0.5
	leastTrim = -1.0
	mostTrim  = 1.5
)

// Adjust changes the plan when a recrawl begins. spare is the number of further recrawls that the
// budget would have allowed since the one before; it is negative if this one begins too soon. late
// is the part of its wait, 0 to 1, by which the recrawl is late because it had to wait for the
// budget. So the budget is used up, as long as no page waits much longer than planned.
func (p *Plan) Adjust(spare, late float64) {
	if spare > 0 && p.price <= cheapest { // there is nothing more to fetch
		spare = 0
	}
	pages := float64(p.census.pages + p.census.plain)
	p.trim += trimStep * (spare - late) / max(pages, 100)
	p.trim = min(max(p.trim, leastTrim), mostTrim)
}
