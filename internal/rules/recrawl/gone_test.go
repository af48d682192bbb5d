package recrawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestGoneWait: a page that is gone is fetched again after a day, or sooner if its sitemap says
// that it changes more often, and later each time.
func TestGoneWait(t *testing.T) {
	for _, c := range []struct {
		claimed, min time.Duration
		want         time.Duration
	}{
		{0, time.Hour, 24 * time.Hour},
		{time.Hour, time.Hour, 6 * time.Hour},
		{12 * time.Hour, time.Hour, 12 * time.Hour},
		{365 * day, time.Hour, 24 * time.Hour},
		{time.Hour, 10 * time.Hour, 10 * time.Hour},
		{0, 3 * day, 3 * day},
	} {
		p := newPlan(t, func(o *Options) { o.Min = c.min })
		v := &Visit{Page: Page{Claimed: c.claimed}, At: start}
		for times := range p.o.Missing - 1 {
			v.TimesGone = times
			assert.Equal(t, p.Gone(v, &Site{}).Due.Sub(start), c.want<<times, "claimed", c.claimed, "min", c.min, times,
				"visits before: fetched after")
		}
	}
}

// TestNewsOfGonePages: a list that names a page which is gone brings the visit forward, once, and
// the further the more of such news were true.
func TestNewsOfGonePages(t *testing.T) {
	p, site := newPlan(t, func(o *Options) { o.Missing = 100 }), &Site{}
	visit := func(m Memory, timesGone int) (Memory, float64) {
		t.Helper()
		planned := m.Due.Sub(m.At)
		read := m.At.Add(time.Minute)
		news := News{Modified: read, Read: read, Gone: true, TimesGone: timesGone}
		if timesGone%2 == 0 {
			news.Modified = time.Time{}
		}
		noticed, ok := p.Notice(&Page{}, m, site, news)
		if !ok {
			return m, 1
		}
		noticed.Due = noticed.Due.Truncate(time.Second) // as read from the disk
		if again, ok := p.Notice(&Page{}, noticed, site, news); ok {
			t.Errorf("the same news moves the visit again, from %v to %v", noticed.Due.Sub(m.At), again.Due.Sub(m.At))
		}
		return noticed, float64(noticed.Due.Sub(m.At)) / float64(planned)
	}
	var parts []float64
	m := p.Gone(&Visit{At: start}, site)
	for n := 1; n < 12; n++ {
		noticed, part := visit(m, n)
		parts = append(parts, part)
		m = p.Gone(&Visit{Memory: noticed, At: noticed.Due, TimesGone: n}, site)
	}
	assert.True(t, !(parts[0] < 0.45) && !(parts[0] > 0.55) && !(parts[10] < 0.9),
		"news that were false brought visits forward to %.2f of their waits", parts)
	for range 30 { // now with pages that came back
		m = p.Gone(&Visit{At: start}, site)
		noticed, part := visit(m, 1)
		parts = append(parts, part)
		p.Answered(&Visit{Memory: noticed, At: noticed.Due, TimesGone: 1, Change: Changed}, site)
	}
	assert.AtMost(t, parts[len(parts)-1], 0.35, "news that were true bring visits forward of their wait")
}

// TestNewsOfPagesThatNeverWere: a URL that never had a page, and that a list names later, is
// fetched a day after the last visit, or sooner if the list says that the page has changed since.
func TestNewsOfPagesThatNeverWere(t *testing.T) {
	p, failed := newPlan(t, nil), Memory{At: start}
	for _, c := range []struct {
		modified, read, claimed time.Duration // since the visit
		want                    time.Duration
	}{
		{0, time.Hour, 0, 24 * time.Hour},
		{0, time.Hour, time.Hour, 6 * time.Hour},
		{0, 48 * time.Hour, 0, 48 * time.Hour},
		{time.Hour, 2 * time.Hour, 0, 12 * time.Hour},
		{-time.Hour, 2 * time.Hour, 0, 24 * time.Hour},
		{3 * time.Hour, 2 * time.Hour, 0, 24 * time.Hour},
	} {
		news := News{Read: start.Add(c.read), Gone: true}
		if c.modified != 0 {
			news.Modified = start.Add(c.modified)
		}
		m, ok := p.Notice(&Page{Claimed: c.claimed}, failed, &Site{}, news)
		got := m.Due.Sub(start)
		assert.True(t, ok && got == c.want, "%+v: fetched after %v (%t), want %v", c, got, ok, c.want)
	}
	never := newPlan(t, func(o *Options) { o.Policy = Never })
	_, ok := never.Notice(&Page{}, failed, &Site{}, News{Read: start.Add(time.Hour), Gone: true})
	assert.True(t, !ok, "a page with the policy never is fetched again")
}
