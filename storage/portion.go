package storage

// Portion finds how many items a batch may hold for its commit to change about 32 MiB of pages and hardly more. The memory and the time of a commit go by the
// pages that it changes, and how many an item changes differs: more than one where each lies apart from the others, as with many hosts or very
// large ones, and a small part of one where they lie together. The zero value is ready. It may not be used concurrently.
type Portion struct{ items int }

const (
	mostPortion  = 20_000
	firstPortion = 4_000
	leastPortion = 1_000
	mostChanged  = 32 << 20
)

// Items is how many items the next batch may hold, 1,000 to 20,000.
func (p *Portion) Items() int {
	if p.items == 0 {
		return firstPortion
	}
	return p.items
}

// Committed takes note of a commit of so many items, whose Result.Changed is changed. A commit of few items says little of
// what many would have changed together, so only one that changed too much makes portions smaller, and only a large one makes them larger again.
func (p *Portion) Committed(items int, changed int64) {
	if items <= 0 || changed <= 0 {
		return
	}
	now, fits := p.Items(), int(int64(items)*mostChanged/changed)
	switch {
	case changed > mostChanged:
		p.items = max(leastPortion, min(now, fits))
	case items >= now/4*3:
		p.items = max(now, min(now+now/8, fits, mostPortion))
	}
}
