// Package sizer decides how many items a commit may hold.
package sizer

import "time"

// Sizer adapts the batch size: how many items a batch may hold. It bounds the pages that a
// commit changes, because its memory and its time depend on them, and the pages for each item vary:
// more than one where the rows of the items are far apart, as with many or very large hosts, and a
// small part of one where they are close together. The bound is 32 MiB, and less while commits take
// longer than they should, because other processes use the disk. The zero value is ready for use. A
// Sizer must not be used concurrently.
type Sizer struct {
	items  int   // 0: firstItems
	budget int64 // bytes of pages; 0: mostBytes
}

const (
	mostItems  = 20_000
	firstItems = 2_000
	leastItems = 250
	mostBytes  = 32 << 20
	leastBytes = 8 << 20
	moreBytes  = 512 << 10 // that a quick commit allows the next ones

	longCommit = 300 * time.Millisecond // one that takes longer makes the next ones smaller
	goodCommit = 200 * time.Millisecond // what they should take then; up to this, batches grow
)

// Items returns how many items the next batch may hold, 250 to 20,000.
func (p *Sizer) Items() int {
	if p.items == 0 {
		return firstItems
	}
	return p.items
}

func (p *Sizer) bytes() int64 {
	if p.budget == 0 {
		return mostBytes
	}
	return p.budget
}

// Committed records a commit of a number of items whose Result.Changed is changed, and how long it
// took. The pages of a small commit do not predict those of a large one, nor does its time. So the
// batch size shrinks only after a commit that changed or took too much, and grows only after a
// large one that did not: by an eighth, or to twice the size after a commit that cost little.
func (p *Sizer) Committed(items int, changed int64, took time.Duration) {
	if items <= 0 || changed <= 0 {
		return
	}
	switch budget := p.bytes(); {
	case took > longCommit:
		p.budget = max(leastBytes, min(budget, changed)*int64(goodCommit)/int64(took))
	case took < goodCommit && changed >= budget/2:
		p.budget = min(mostBytes, budget+moreBytes)
	}
	now, fits := p.Items(), int(int64(items)*p.bytes()/changed)
	more := now / 8
	if took < goodCommit/8 && changed < p.bytes()/8 {
		more = now
	}
	switch {
	case changed > p.bytes():
		p.items = max(leastItems, min(now, fits))
	case items >= now/4*3 && (took < goodCommit || changed < leastBytes):
		p.items = max(now, min(now+more, fits, mostItems))
	}
}
