package recrawl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

const day = 24 * time.Hour

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newPlan(t testing.TB, change func(*Options)) *Plan {
	t.Helper()
	o := DefaultOptions()
	if change != nil {
		change(&o)
	}
	return must.Get(New(o))(t)
}

// TestEstimate simulates visits of pages with a known rate and compares it with the estimates, on
// the scale of logarithms, over many pages.
func TestEstimate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name   string
		every  float64 // expected changes between two visits
		dated  bool
		visits int
		bias   float64 // of the logarithm
	}{
		{"often", 0.2, false, 60, 0.1},
		{"about as often as it changes", 1, false, 30, 0.15},
		{"rarely", 3, false, 40, 0.5},
		{"dated, often", 0.2, true, 60, 0.1},
		{"dated, rarely", 3, true, 30, 0.15},
	} {
		const rate = 1.0 / perDay // one change a day
		sum := 0.0
		const pages = 300
		for range pages {
			h := History{}
			for range c.visits {
				wait := c.every * perDay * (0.5 + random.Float64())
				age := random.ExpFloat64() / rate
				switch {
				case age > wait:
					h = h.observe(unchanged, wait)
				case c.dated:
					h = h.observe(exact, age)
				default:
					h = h.observe(changed, wait)
				}
			}
			sum += math.Log(float64(h.estimate(rate*2)) / rate)
		}
		assert.AtMost(t, math.Abs((sum / pages)), c.bias, c.name, "estimates are off by a factor of on average")
	}
}

// TestEstimateOfLittle: observations move the estimate from the prior in the right direction, and
// it stays finite.
func TestEstimateOfLittle(t *testing.T) {
	prior := RateOf(10 * day)
	assert.AtMost(t, math.Abs(float64((History{}).estimate(prior)/prior)-1), 0.01, "of nothing times the prior")
	calm := History{}.observe(unchanged, 30*perDay).estimate(prior)
	busy := History{}.observe(changed, perDay).estimate(prior)
	dated := History{}.observe(exact, perDay).estimate(prior)
	if !(calm < prior && prior < busy && busy < 10*prior && prior < dated && dated < 10*prior) {
		t.Errorf("prior %.3g, after a month without a change %.3g, after a change within a day %.3g, a day "+
			"ago %.3g a day",
			prior.PerDay(), calm.PerDay(), busy.PerDay(), dated.PerDay())
	}
	always := History{}
	for range 50 {
		always = always.observe(changed, 3600)
	}
	if got := always.estimate(prior); !(got > RateOf(time.Hour)) || got > fastestRate {
		t.Errorf("of changes at every hourly visit: %.3g a day", got.PerDay())
	}
}

// TestHistory: a full history joins visits without a change and keeps their time, or else drops the
// oldest observation.
func TestHistory(t *testing.T) {
	h := History{}
	for range 100 {
		h = h.observe(unchanged, perDay)
	}
	calm := 0.0
	for _, o := range h.Observations() {
		calm += o.Span.Seconds() / perDay
	}
	assert.True(t, !(calm < 60) && !(calm > 160), "100 days without a change are remembered as %.0f", calm)
	h = h.observe(changed, 3600).observe(exact, 60)
	all := h.Observations()
	assert.True(t, len(all) == 7 && all[0].Dated && all[0].Change == Changed && all[1].Change == Changed &&
		!all[1].Dated && all[2].Change == Same, "%+v", all)
	for range 7 {
		h = h.observe(changed, 3600)
	}
	for _, o := range h.Observations() {
		assert.True(t, o.Change == Changed && !o.Dated, "%+v is still there", o)
	}
}

// TestDeferred: the time in which a page could not be fetched counts when it can be fetched again.
func TestDeferred(t *testing.T) {
	p, site := newPlan(t, nil), &Site{}
	m := p.Answered(&Visit{At: start}, site)
	v := &Visit{Memory: m, At: start.Add(10 * day)}
	h := p.Unanswered(v, site)
	assert.True(t, p.Pages() == 0 && !h.Planned(), "a page that cannot be fetched is on the plan: %v", h)
	m = p.Answered(&Visit{Memory: Memory{At: v.At, History: h}, At: start.Add(12 * day), Change: Same}, site)
	got := m.History.Observations()
	assert.True(t, len(got) == 1 && got[0].Span >= 10*day && got[0].Span <= 14*day,
		"twelve days without a change are remembered as %+v", got)
}

// TestWait checks the index against its equation.
func TestWait(t *testing.T) {
	for _, c := range []float64{1e-12, 1e-6, 0.01, 0.5, 1, 7, 1e6} {
		x := wait(c)
		assert.AtMost(t, math.Abs((x+math.Expm1(-x))/c-1), 1e-9, "wait", c, "is", x, "where the index")
	}
}

// TestPriceMatchesTheBudget: the waits of all pages match the budget, for any mixture of pages, and
// after changes.
func TestPriceMatchesTheBudget(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	p := newPlan(t, func(o *Options) { o.Min, o.Max = time.Second, 3000*day })
	site := &Site{}
	for range 5000 {
		v := &Visit{Page: Page{Priority: int8(random.IntN(60) - 30)}, Memory: Memory{At: start}, At: start,
			Change: Changed}
		v.At = start.Add(time.Duration(math.Exp(random.NormFloat64()*2) * float64(day)))
		if random.IntN(2) == 0 {
			v.Change = Same
		}
		p.Answered(v, site)
	}
	last := 0.0
	for _, budget := range []float64{10, 100, 1000, 20_000} {
		f := p.Forecast(budget)
		assert.AtMost(t, math.Abs(f.Visits/budget-1), 0.02, "a budget of", budget, "comes to", f.Visits, "visits a day")
		assert.True(t, f.Freshness > last && f.Freshness < 1,
			"a budget of %g makes copies up to date for %g, a smaller one for %g", budget, f.Freshness, last)
		last = f.Freshness
	}
	if f := p.Forecast(0); f.Visits < 20_000 || f.Visits > 5000*perDay {
		t.Errorf("without a limit: %+v", f)
	}
}

// TestParts: plans that divide a budget by what their pages need at the mean of their prices come to the price
// that one plan of all pages has, whatever their pages are and however much there is to divide.
func TestParts(t *testing.T) {
	for _, budget := range []float64{5, 100, 2000} {
		random := rand.New(rand.NewPCG(5, 6))
		all, parts := newPlan(t, nil), []*Plan{newPlan(t, nil), newPlan(t, nil), newPlan(t, nil)}
		for n := range 3000 {
			v := &Visit{Page: Page{Host: "h", RequestURI: fmt.Sprint("/", n)}, Change: First}
			v.At, v.Priority = start, int8(random.IntN(20))
			v.Modified = start.Add(-time.Duration(math.Exp(random.NormFloat64()+float64(3*(n%3))) * float64(time.Hour)))
			parts[n%3].Answered(v, &Site{})
		}
		for _, p := range parts {
			p.census.each(func(rate Rate, i Importance, pages float64) {
				for range int(pages) {
					all.census.add(History{}.planned(1/float64(rate)), i)
				}
			})
		}
		all.SetBudget(budget)
		want, _ := all.Demand(1, 0)
		at := 1.0
		for range 12 { // rounds
			weights, sum, next := make([]float64, len(parts)), 0.0, 0.0
			for i, p := range parts {
				var price float64
				price, weights[i] = p.Demand(at, 0)
				sum, next = sum+weights[i], next+weights[i]*math.Log(price)
			}
			for i, p := range parts {
				p.SetBudget(budget * weights[i] / sum)
			}
			at = math.Exp(next / sum)
		}
		for i, p := range parts {
			if price, _ := p.Demand(at, 0); math.Abs(math.Log(price/want)) > 0.1 {
				t.Errorf("a budget of %g: part %d of %g has the price %g, all pages have %g", budget, i, p.Budget(),
					price, want)
			}
		}
	}
}

// TestLeastBudget: a plan without a part of a budget keeps its price, and says what its pages need.
func TestLeastBudget(t *testing.T) {
	p := newPlan(t, func(o *Options) { o.Budget = 10 })
	for n := range 100 {
		p.Answered(&Visit{Page: Page{Host: "h", RequestURI: fmt.Sprint("/", n)}, At: start}, &Site{})
	}
	before, need := p.Demand(1e6, 0)
	p.SetBudget(LeastBudget)
	if after, same := p.Demand(1e6, 0); after != before || same != need || need <= 0 {
		t.Errorf("price %g, before %g; need %g, before %g", after, before, same, need)
	}
	if _, more := p.Demand(1e6, 1100); more <= need {
		t.Errorf("with 1,000 pages that are not on the plan it needs %g, without them %g", more, need)
	}
}

// TestSpent: the plan makes up for planned visits that are not made, takes back visits beyond the
// budget, and ignores room that it cannot use.
func TestAdjust(t *testing.T) {
	rounds := func(use func(demand float64) (spare, late float64)) float64 {
		p := newPlan(t, func(o *Options) { o.Budget = 100 })
		for n := range 1000 {
			v := Visit{Page: Page{Host: "h", RequestURI: fmt.Sprint("/", n)}, At: start, Change: First,
				Modified: start.Add(-time.Duration(n+1) * time.Hour)}
			p.Answered(&v, &Site{})
		}
		for range 20 * 1000 {
			p.Adjust(use(p.census.demand(p.priceAt(p.o.Budget*math.Exp(p.trim)), p.o.bounds()) * perDay / p.o.Budget))
		}
		return math.Exp(p.trim)
	}
	if got := rounds(func(demand float64) (float64, float64) {
		return 1/(0.8*demand) - 1, 0
	}); math.Abs(got-1/0.8) > 0.03 {
		t.Errorf("four in five recrawls are made, the price aims at %.2f of the budget", got)
	}
	if got := rounds(func(demand float64) (float64, float64) {
		return 0, max(1.2*demand-1, 0)
	}); math.Abs(got-1/1.2) > 0.03 {
		t.Errorf("six recrawls are made and five are planned, the price aims at %.2f of the budget", got)
	}
	p := newPlan(t, func(o *Options) { o.Budget = 1e9 })
	p.Answered(&Visit{Page: Page{Host: "h", RequestURI: "/"}, At: start}, &Site{})
	p.currentPrice()
	for range 1000 {
		p.Adjust(100, 0)
	}
	if p.trim != 0 {
		t.Errorf("the price aims at %.2f of a budget that it cannot use up", math.Exp(p.trim))
	}
}

// TestCensusIsExact: after any events, the census equals a new count of the pages, and survives
// encoding.
func TestCensusIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	rules := []Rule{
		{Pattern: regexp.MustCompile("^/fixed"), Policy: Fixed, Interval: day, Min: time.Hour, Max: 30 * day},
		{Pattern: regexp.MustCompile("^/nutch"), Policy: Nutch, Interval: day, Min: time.Hour, Max: 30 * day},
		{Pattern: regexp.MustCompile("^/never"), Policy: Never, Min: time.Hour, Max: 30 * day},
	}
	p := newPlan(t, func(o *Options) { o.Rules = rules })
	kinds := []string{"/", "/fixed", "/nutch", "/never"}
	pages, sites := make([]Visit, 200), make([]Site, 5)
	for range 5000 {
		n := random.IntN(len(pages))
		v, site := &pages[n], &sites[n%len(sites)]
		if v.RequestURI == "" {
			v.RequestURI, v.Priority, v.Memory.At = kinds[random.IntN(4)], int8(random.IntN(256)-128), start
		}
		v.At = v.Memory.At.Add(time.Duration(random.IntN(1e6)) * time.Second)
		v.Change, v.TimesGone = Change(random.IntN(3)), 1+random.IntN(6)
		if random.IntN(5) == 0 {
			v.Modified = v.At.Add(-time.Duration(random.IntN(1e6)) * time.Second)
		}
		switch random.IntN(6) {
		case 0:
			v.Memory = p.Gone(v, site)
		case 1:
			v.Memory = Memory{At: v.At, History: p.Unanswered(v, site)}
		case 2:
			if m, ok := p.Notice(&v.Page, v.Memory, site, News{Modified: v.At, Read: v.At}); ok {
				v.Memory = m
				continue
			}
			fallthrough
		default:
			v.Memory = p.Answered(v, site)
		}
	}
	var want census
	wantSites := make([]Site, len(sites))
	for n := range pages {
		v := &pages[n]
		want.add(v.Memory.History, ImportanceOf(v.Priority, v.Depth))
		wantSites[n%len(sites)].add(v.Memory.History)
	}
	assert.Equal(t, p.census, want, "the census counts", p.census.pages, p.census.plain, "pages, there are", want.pages,
		want.plain)
	for i := range sites {
		assert.True(t, sites[i].pages == wantSites[i].pages && sites[i].levels == wantSites[i].levels,
			"site %d: %+v, want %+v", i, sites[i], wantSites[i])
		b, _ := sites[i].AppendBinary(nil)
		assert.Returns(DecodeSite(b))(t, sites[i], "site", i, "comes back as")
	}
	encoded, _ := p.AppendBinary(nil)
	again := newPlan(t, func(o *Options) { o.Rules = rules })
	err := again.Restore(encoded)
	assert.True(t, err == nil && again.census == p.census && again.price == p.price && again.trim == p.trim,
		"the plan comes back different: %v", err)
	v := Visit{Page: Page{RequestURI: "/"}, At: start}
	if a, b := p.Answered(&v, &Site{}), again.Answered(&v, &Site{}); a.Due.Sub(b.Due).Abs() > 12*time.Hour {
		t.Errorf("the same page is due at %v by one plan, at %v by one that was restored", a.Due, b.Due)
	}
}

// TestPrior: a page with one visit is planned by the rates of its host.
func TestPrior(t *testing.T) {
	p := newPlan(t, func(o *Options) { o.Budget = 10 })
	news, archive := &Site{}, &Site{}
	for range 20 {
		p.Answered(&Visit{Memory: Memory{At: start}, At: start.Add(2 * time.Hour), Change: Changed}, news)
		p.Answered(&Visit{Memory: Memory{At: start}, At: start.Add(100 * day), Change: Same}, archive)
	}
	first := func(s *Site) Memory { return p.Answered(&Visit{At: start.Add(200 * day)}, s) }
	a, b, c := first(news), first(&Site{}), first(archive)
	rate := func(m Memory) Rate { r, _ := m.History.Rate(); return r }
	if !(rate(a) > 5*rate(b) && rate(b) > 5*rate(c)) {
		t.Errorf("a first page of a busy host is believed to change %.3g times a day, of an unknown one %.3g, of a "+
			"calm one %.3g",
			rate(a).PerDay(), rate(b).PerDay(), rate(c).PerDay())
	}
}

// TestClaims: the claim of a sitemap counts for the first wait of a page, within bounds, and for
// nothing else.
func TestClaims(t *testing.T) {
	plan := func(v Visit, claimed time.Duration) (Memory, *Plan, Site) {
		p, site := newPlan(t, func(o *Options) { o.Budget = 1; o.Max = 1000 * day }), Site{}
		for range 20 { // known pages determine the price
			p.Answered(&Visit{Memory: Memory{At: start}, At: start.Add(14 * day), Change: Same}, &site)
		}
		v.At, v.Claimed = start.Add(100*day), claimed
		return p.Answered(&v, &site), p, site
	}
	wait := func(v Visit, claimed time.Duration) time.Duration {
		m, _, _ := plan(v, claimed)
		return m.Due.Sub(m.At)
	}
	none := wait(Visit{}, 0)
	daily, weekly, yearly := wait(Visit{}, day), wait(Visit{}, 7*day), wait(Visit{}, 365*day)
	assert.True(t, daily < weekly && weekly < none && none < yearly,
		"a page said to change daily waits for %v, weekly %v, yearly %v, one without a claim %v", daily, weekly, yearly,
		none)
	for _, hostile := range []time.Duration{1, time.Second, math.MaxInt64} {
		if got := wait(Visit{}, hostile); got < none/mostClaimed || got > none*mostClaimed {
			t.Errorf("a page said to change every %v waits for %v, without that for %v", hostile, got, none)
		}
	}
	for name, v := range map[string]Visit{
		"without a change":        {Memory: Memory{At: start}, Change: Same},
		"with a change":           {Memory: Memory{At: start}, Change: Changed},
		"with a date, seen first": {Change: First, Modified: start.Add(60 * day)},
		"of a page seen often": {Memory: Memory{At: start,
			History: History{byIndex + 40, unchanged + 60, changed + 50}}, Change: Same},
	} {
		assert.Equal(t, wait(v, 0), wait(v, time.Second), "a visit", name, "and a claim: it waits for in place of")
	}
	m, p, site := plan(Visit{}, 0)
	claimed, pc, sitec := plan(Visit{}, time.Hour)
	assert.True(t, m.History == claimed.History && p.census == pc.census && site == sitec,
		"a claim changes the estimate of the page, its host or all pages")
}

// TestPlainPolicies compares the plain rules with their crawlers.
func TestPlainPolicies(t *testing.T) {
	for _, c := range []struct {
		policy   Policy
		changes  []Change
		modified time.Duration // before the visit; 0: not given
		want     time.Duration // from the last visit to the next
	}{
		{Fixed, []Change{First, Changed, Same}, 0, 10 * day},
		{Nutch, []Change{First}, 0, 10 * day},
		{Nutch, []Change{First, Same}, 0, 14 * day},
		{Nutch, []Change{First, Changed}, 0, 8 * day},
		{Nutch, []Change{First, Same, Changed}, 0, 10 * day * 14 / 10 * 8 / 10},
		{Nutch, []Change{First, Same}, 40 * day, 28 * day},
		{StormCrawler, []Change{First}, 0, 10 * day},
		{StormCrawler, []Change{First, Same}, 0, 15 * day},
		{StormCrawler, []Change{First, Same, Changed}, 0, 8 * day},
		{StormCrawler, []Change{First, Same, Same, Same, Same, Same, Same, Same, Same, Same}, 0, 100 * day},
	} {
		p := newPlan(t, func(o *Options) { o.Policy, o.Interval, o.Min, o.Max = c.policy, 10*day, day, 100*day })
		m, site := Memory{}, &Site{}
		at := start
		for _, change := range c.changes {
			v := &Visit{Memory: m, At: at, Change: change}
			if c.modified > 0 && change == Same {
				v.Modified = at.Add(-c.modified)
			}
			m = p.Answered(v, site)
			at = m.Due
		}
		assert.AtMost(t, (m.Due.Sub(m.At) - c.want).Abs(), time.Minute, c.policy, "after", c.changes, c.want)
	}
}

// TestNotices: news of a change brings a visit forward, the further the more such news were true.
// In the end, a site with false news gains nothing.
func TestNotices(t *testing.T) {
	for _, honest := range []bool{true, false} {
		p, site := newPlan(t, func(o *Options) { o.Budget = 0.02; o.Max = 400 * day }), &Site{}
		m := p.Answered(&Visit{At: start}, site)
		var parts []float64
		for range 30 {
			planned := m.Due.Sub(m.At)
			listed := m.At.Add(planned / 100)
			noticed, ok := p.Notice(&Page{}, m, site, News{Modified: listed, Read: listed})
			if !ok {
				parts = append(parts, 1)
			} else {
				parts = append(parts, float64(noticed.Due.Sub(m.At))/float64(planned))
				later := listed.Add(time.Second)
				again, ok := p.Notice(&Page{}, noticed, site, News{Modified: later, Read: later})
				must.True(t, !ok, "a second notice moves the visit again, to %v", again.Due)
				m = noticed
			}
			v := &Visit{Memory: m, At: m.Due, Change: Same}
			if honest {
				v.Change = Changed
			}
			m = p.Answered(v, site)
		}
		first, last := parts[0], parts[len(parts)-1]
		assert.True(t, (!honest || first < 0.6 && last < 0.1) && (honest || last > 0.9),
			"honest %t: visits came after %.2f of their wait at first and %.2f in the end", honest, first, last)
	}
	p := newPlan(t, nil)
	gone := Memory{At: start}
	for range 3 { // a page that was given up is fetched again, but not before each interval
		read := gone.At.Add(time.Minute)
		if _, ok := p.Notice(&Page{}, gone, &Site{}, News{Read: read, Gone: true, TimesGone: 5}); ok {
			t.Error("a page that was given up is fetched because a list names it")
		}
		m, ok := p.Notice(&Page{}, gone, &Site{}, News{Modified: read, Read: read, Gone: true, TimesGone: 5})
		assert.True(t, ok && m.Due.Sub(gone.At) >= 7*day, "a page that was given up is fetched after %v",
			m.Due.Sub(gone.At))
		gone = p.Gone(&Visit{Memory: m, At: m.Due, TimesGone: 6}, &Site{})
		assert.True(t, gone.Due.IsZero(), "it is not given up again: %+v", gone)
	}
}

// TestRules: the first rule that matches a page counts.
func TestRules(t *testing.T) {
	o := DefaultOptions()
	o.Rules = []Rule{
		{Hosts: []string{"*.news.test"}, Pattern: regexp.MustCompile("^/live"), Policy: Fixed, Interval: time.Hour,
			Min: time.Second, Max: day},
		{Hosts: []string{"news.test", "*.news.test"}, Policy: Never, Min: time.Second, Max: day},
	}
	for page, want := range map[Page]Policy{
		{Host: "www.news.test", RequestURI: "/live/1"}:    Fixed,
		{Host: "www.news.test", RequestURI: "/archive"}:   Never,
		{Host: "news.test", RequestURI: "/live/1"}:        Never,
		{Host: "othernews.test", RequestURI: "/live/1"}:   Harmonic,
		{Host: "www.other.test", RequestURI: "/archive"}:  Harmonic,
		{Host: "news.test.other", RequestURI: "/archive"}: Harmonic,
	} {
		assert.Equal(t, o.rule(&page).Policy, want, page)
	}
	bad := o
	bad.Rules = append([]Rule{{Min: 0}}, bad.Rules...)
	err := bad.Validate()
	assert.True(t, err != nil && strings.Contains(err.Error(), "rule 1"), "%v", err)
}

// TestSimhashIsAMajority compares with a count of each bit alone, of more words than a lane counts.
func TestSimhashIsAMajority(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 254, 255, 256, 511, 2000} {
		var words [64]int
		var text strings.Builder
		for range n {
			word := string(rune('a'+random.IntN(26))) + strings.Repeat("b", random.IntN(3))
			text.WriteString(word + " ")
			one := Simhash(word)
			for i := range words {
				words[i] += int(one >> i & 1)
			}
		}
		got := Simhash(text.String())
		for i, with := range words {
			assert.Equal(t, (got>>i&1 == 1), 2*with > n, n, "words: bit", i, with, "of them")
		}
	}
}

// TestSimhash: text that changes with every request does not count; the content does.
func TestSimhash(t *testing.T) {
	text := strings.Repeat("A harbour, a lighthouse and a handful of houses lie at the end of the road, where the "+
		"ferry leaves twice a day. ", 3) +
		"Old boats rest on the beach until somebody paints them again."
	base := Simhash(text + " Read 1,204 times. 21.11.2026 20:15")
	for other, similar := range map[string]bool{
		text + " Read 98,531 times. 3.2.2027 08:01":                                                          true,
		strings.ToUpper(text) + "Read 7 times":                                                               true,
		strings.ReplaceAll(text, "harbour", "railway station with two platforms and many trains"):            false,
		strings.Repeat("Something else altogether is told here, in other words and about other people. ", 8): false,
	} {
		assert.Equal(t, Similar(base, Simhash(other), 3), similar, other, "similar")
	}
	assert.True(t, Simhash("") == 0 && Simhash("12 34 !?") == 0 && !Similar(0, 0, 64),
		"texts without words are similar to something")
}

// FuzzDecode: damaged bytes are refused or give a plan that works.
func FuzzDecode(f *testing.F) {
	p := newPlan(f, nil)
	for n := range 20 {
		p.Answered(&Visit{Page: Page{Priority: int8(n)}, Memory: Memory{At: start},
			At: start.Add(time.Duration(n) * day), Change: Changed}, &Site{})
	}
	encoded, _ := p.AppendBinary(nil)
	site, _ := (&Site{pages: 3, levels: 100, notices: 2, confirmed: 1}).AppendBinary(nil)
	f.Add(encoded, site, uint64(0x0102030405060708))
	f.Fuzz(func(t *testing.T, plan, site []byte, history uint64) {
		p := newPlan(t, nil)
		if p.Restore(plan) == nil {
			again, _ := p.AppendBinary(nil)
			q := newPlan(t, nil)
			if err := q.Restore(again); err != nil || q.census != p.census {
				t.Fatalf("what was read cannot be written and read again: %v", err)
			}
		}
		s, err := DecodeSite(site)
		if err == nil {
			b, _ := s.AppendBinary(nil)
			again, err := DecodeSite(b)
			must.True(t, err == nil && reflect.DeepEqual(again, s), "%+v comes back as %+v, %v", s, again, err)
		}
		var h History
		for i := range h {
			h[i] = byte(history >> (8 * i))
		}
		_ = h.Observations()
		m := p.Answered(&Visit{Memory: Memory{At: start, Due: start.Add(day), History: h}, At: start.Add(day),
			Change: Same}, &s)
		wait := m.Due.Sub(m.At)
		must.True(t, wait >= p.o.Min && wait <= p.o.Max, "a page of history %v waits for %v", h, wait)
	})
}

// BenchmarkAnswered: the time to plan a visit does not depend on the number of pages.
func BenchmarkAnswered(b *testing.B) {
	for _, pages := range []int{10_000, 10_000_000} {
		b.Run("pages="+map[int]string{10_000: "10k", 10_000_000: "10M"}[pages], func(b *testing.B) {
			p := newPlan(b, nil)
			random := rand.New(rand.NewPCG(7, 8))
			for range 10_000 {
				h := History{}.planned(math.Exp(random.NormFloat64()*2) * 30 * perDay)
				for range pages / 10_000 {
					p.census.add(h, ImportanceOf(int8(random.IntN(20)-10), 1))
				}
			}
			site := &Site{}
			v := &Visit{Memory: Memory{At: start}, At: start.Add(day), Change: Same}
			v.Memory = p.Answered(v, site)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; b.Loop(); n++ {
				v.At = v.At.Add(day)
				v.Change = Change(1 + n%2)
				v.Memory = p.Answered(v, site)
			}
		})
	}
}

// TestFresh: a page that says how long it can be used is not visited before, unless the interval is
// fixed, and never later than Max because of it.
func TestFresh(t *testing.T) {
	for _, policy := range []Policy{Harmonic, Nutch, StormCrawler, Fixed} {
		wait := func(fresh time.Duration) time.Duration {
			p := newPlan(t,
				func(o *Options) { o.Policy, o.Interval, o.Min, o.Max = policy, time.Hour, time.Hour, 30*day })
			m := p.Answered(&Visit{Memory: Memory{At: start}, At: start.Add(time.Hour), Change: Changed, Fresh: fresh},
				&Site{})
			return m.Due.Sub(start.Add(time.Hour))
		}
		without := wait(0)
		for _, fresh := range []time.Duration{-day, time.Minute, 25 * day, 1000 * day} {
			want := max(without, min(fresh, 30*day))
			if policy == Fixed {
				want = time.Hour
			}
			assert.Equal(t, wait(fresh), want, policy, "fresh for", fresh, "due after")
		}
		assert.True(t, without < 25*day, "%v: due after %v anyway", policy, without)
	}
}
