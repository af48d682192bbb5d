package revisit

import "time"

// Notice is told that a page has changed, by a sitemap or a feed of its host: when the page says to have changed, and
// when that was read. It brings the visit forward, the further the more of the host's notices were true, and
// never to before the shortest wait after the visit before. Each visit is brought forward once at most. So a site
// whose notices are false gains little by them, and soon nothing. False: all stays as it is.
func (p *Plan) Notice(page *Page, m Memory, gone bool, site *Site, modified, read time.Time) (Memory, bool) {
	rule := p.o.rule(page)
	if !modified.After(m.At) || modified.After(read) || rule.Policy == Never {
		return m, false
	}
	soonest := m.At.Add(rule.Min)
	if gone && m.Due.IsZero() { // it was given up
		m.Due = later(read, m.At.Add(max(rule.Min, rule.Interval)))
		return m, true
	}
	if !m.History.Planned() || m.History.Noticed() || m.Due.IsZero() {
		return m, false
	}
	doubtful := time.Duration((1 - site.trust()) * float64(m.Due.Sub(m.At)))
	due := later(later(m.At.Add(doubtful), soonest), read)
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
