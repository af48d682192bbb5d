package main

// until advances a page and its score to a day.
func (p *page) until(today float64) {
	for p.next <= today {
		p.score(p.next)
		p.missed++
		if p.missed == 1 {
			p.first = p.next
		}
		p.changed = p.next
		p.next = p.after(p.next)
	}
	p.score(today)
}

// score counts the days up to one, in which nothing changes. A page without a copy counts as if its
// copy had missed a change.
func (p *page) score(today float64) {
	from := max(p.since, p.from)
	if today > from {
		days := today - from
		switch {
		case p.seen && p.missed == 0:
			p.fresh += days
		case p.seen:
			p.outdated += days * ((from+today)/2 - p.first)
		}
		p.penalty += days * p.harmonic()
	}
	p.since = max(p.since, today)
}

// harmonic returns 1 + 1/2 + ... over the changes that the copy has missed.
func (p *page) harmonic() (h float64) {
	n := p.missed
	if !p.seen {
		n = max(n, 1)
	}
	for j := 1; j <= n; j++ {
		h += 1 / float64(j)
	}
	return h
}

// fetched records a visit and reports whether the copy that it replaces was different.
func (p *page) fetched(today float64) (first, changed bool) {
	p.until(today)
	first, changed = !p.seen, p.seen && p.missed > 0
	p.seen, p.missed = true, 0
	return first, changed
}

// Score is the result of a policy, over all pages weighted by importance.
type Score struct {
	Freshness float64 `json:"freshness"` // part of the time in which copies equal the pages
	Penalty   float64 `json:"penalty"`   // mean harmonic penalty of missed changes
	Age       float64 `json:"age"`       // mean days that copies are out of date
	Visits    float64 `json:"visits"`    // recrawls a day
}

func score(all []*page, end float64) (s Score) {
	for _, p := range all {
		days := end - p.from
		p.until(end)
		s.Freshness += p.weight * p.fresh / days
		s.Penalty += p.weight * p.penalty / days
		s.Age += p.weight * p.outdated / days
	}
	return s
}
