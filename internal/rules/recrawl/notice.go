package recrawl

import "time"

// News is what a sitemap or feed says about a known page of its host.
type News struct {
	Modified  time.Time // when the page changed, by the list; zero: the list only names it
	Read      time.Time // when the list was read
	Gone      bool      // the last visit did not find the page
	TimesGone int       // visits in a row that did not find a page that was there before, as in Visit
}

// Notice handles news. It brings the visit forward, the further the more of the host's notices were
// true, and never to before the shortest wait after the visit before. Each visit is brought forward
// once at most. So a site whose notices are false gains little by them, and soon nothing. It
// returns false if nothing changes.
func (p *Plan) Notice(page *Page, m Memory, site *Site, n News) (Memory, bool) {
	rule := p.o.rule(page)
	if n.Modified.After(n.Read) {
		n.Modified = time.Time{}
	}
	switch {
	case rule.Policy == Never:
		return m, false
	case n.Gone:
		return rule.noticeGone(page, m, site, n)
	case !n.Modified.After(m.At), !m.History.Planned(), m.History.Noticed(), m.Due.IsZero():
		return m, false
	}
	due := rule.bringForward(m.At, m.Due.Sub(m.At), site, n.Read)
	if !due.Before(m.Due) {
		return m, false
	}
	m.Due = due
	if m.History.isPlain() {
		m.History[0] = plainNoticed
	} else {
		m.History[0] += noticed - byIndex
	}
	return m, true
}

// bringForward returns the new time of a visit that was due after a wait.
func (r *Rule) bringForward(at time.Time, wait time.Duration, site *Site, read time.Time) time.Time {
	doubtful := time.Duration((1 - site.trust()) * float64(wait))
	return later(at.Add(max(doubtful, r.Min)), read)
}

// noticeGone is Notice for a page that the last visit did not find. It is news even if a list only
// names the page.
func (r *Rule) noticeGone(page *Page, m Memory, site *Site, n News) (Memory, bool) {
	changed := n.Modified.After(m.At)
	if m.Due.IsZero() && n.TimesGone > 0 { // the page was given up
		if changed {
			m.Due = later(n.Read, m.At.Add(max(r.Min, r.Interval)))
		}
		return m, changed
	}
	times := max(n.TimesGone, 1)
	wait := r.goneWait(times, page.Claimed)
	due := r.bringForward(m.At, wait, site, n.Read)
	switch {
	case m.Due.IsZero() && !changed: // the page never existed, and the list may name it all the time
		due = later(m.At.Add(wait), n.Read)
	case m.Due.IsZero():
	case n.TimesGone == 0 && !changed, r.broughtForward(m, times, page.Claimed), !due.Before(m.Due):
		return m, false
	}
	m.Due = due
	return m, true
}

// goneWait returns the wait after the n-th visit in a row that did not find a page: a day after the
// first, or sooner if its sitemap says that it changes more often, though not much.
func (r *Rule) goneWait(n int, claimed time.Duration) time.Duration {
	const usual = 24 * time.Hour
	wait := usual
	if claimed > 0 {
		wait = min(max(claimed, usual/mostClaimed), usual)
	}
	return max(r.Min, wait) << min(n-1, 16)
}

// broughtForward reports whether the visit of a page that n visits did not find was brought
// forward.
func (r *Rule) broughtForward(m Memory, n int, claimed time.Duration) bool {
	const rounding = 2 * time.Second // of stored times
	return n > 0 && !m.Due.IsZero() && m.Due.Before(m.At.Add(r.goneWait(n, claimed)-rounding))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
