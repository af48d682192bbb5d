package sizer

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// slowStore is a store in virtual time: how much a commit of a number of items changes, and how long
// it takes.
type slowStore struct {
	pagesEach float64       // pages changed for each item
	rate      float64       // bytes a second that the disk takes
	wait      time.Duration // of each commit, whatever it holds
}

func (s slowStore) commit(p *Sizer, items int) (took time.Duration) {
	changed := float64(items) * s.pagesEach * 4096
	took = s.wait + time.Duration(changed/s.rate*float64(time.Second))
	p.Committed(items, int64(changed), took)
	return took
}

const (
	quietDisk = 400e6 // bytes a second
	busyDisk  = 25e6
	pages     = mostBytes / 4096
)

// TestSizer: on a quiet disk the batch size grows to the bound for any size of an item, and
// follows when that size changes.
func TestSizer(t *testing.T) {
	var p Sizer
	for _, test := range []struct {
		pagesEach   float64
		least, most int
	}{
		{0.1, mostItems, mostItems},
		{1, pages * 8 / 9, pages},
		{3, pages / 3 * 8 / 9, pages / 3},
		{100, leastItems, leastItems},
		{3, pages / 3 * 8 / 9, pages / 3},
		{0.1, mostItems, mostItems},
	} {
		for range 120 {
			slowStore{pagesEach: test.pagesEach, rate: quietDisk}.commit(&p, p.Items())
		}
		if got := p.Items(); got < test.least || got > test.most {
			t.Errorf("%v pages an item: batch size %d, want %d to %d", test.pagesEach, got, test.least, test.most)
		}
	}
}

// TestSizerOfSlowDisk: when a disk becomes sixteen times as slow, one commit is long, and all
// others take less than half a second. When it is quiet again, the batch size grows back.
func TestSizerOfSlowDisk(t *testing.T) {
	for _, pagesEach := range []float64{0.3, 1, 3} {
		var p Sizer
		for range 100 {
			slowStore{pagesEach: pagesEach, rate: quietDisk}.commit(&p, p.Items())
		}
		before, long := p.Items(), 0
		for range 200 {
			if (slowStore{pagesEach: pagesEach, rate: busyDisk}).commit(&p, p.Items()) >= 500*time.Millisecond {
				long++
			}
		}
		assert.True(t, long <= 1 && p.Items() < before/2,
			"%v pages an item: %d long commits, and a batch size of %d, %d before", pagesEach, long, p.Items(), before)
		for range 120 {
			slowStore{pagesEach: pagesEach, rate: quietDisk}.commit(&p, p.Items())
		}
		assert.AtLeast(t, p.Items(), before*8/9, pagesEach, "pages an item: a batch size of on a quiet disk", before,
			"before")
	}
}

// TestSizerOfSlowSyncs: where each commit waits long for its sync, smaller ones would not help.
// The batch size falls no further than to what costs little time.
func TestSizerOfSlowSyncs(t *testing.T) {
	var p Sizer
	for range 200 {
		slowStore{pagesEach: 0.1, rate: quietDisk, wait: 400 * time.Millisecond}.commit(&p, p.Items())
	}
	assert.AtLeast(t, p.Items(), 15_000, "batch size")
}

// TestSizerOfSmallCommits: commits of few items, which change much for each, do not shrink the
// batch size, nor do commits that change nothing.
func TestSizerOfSmallCommits(t *testing.T) {
	var p Sizer
	for range 100 {
		p.Committed(10, 1<<20, time.Millisecond)
		p.Committed(0, 1<<30, time.Second)
		p.Committed(10, 0, time.Second)
	}
	assert.Equal(t, p.Items(), firstItems, "batch size")
}

// TestSizerGrowsByLargeCommits: after a slow time, small commits say nothing about large ones.
func TestSizerGrowsByLargeCommits(t *testing.T) {
	var p Sizer
	slowStore{pagesEach: 1, rate: busyDisk}.commit(&p, p.Items())
	slow := p.Items()
	for range 100 {
		slowStore{pagesEach: 1, rate: quietDisk}.commit(&p, 10)
	}
	assert.Equal(t, p.Items(), slow, "batch size after small commits before")
}

// TestSizerOfCheapItems: a list in the order of its hosts is in large batches soon.
func TestSizerOfCheapItems(t *testing.T) {
	var p Sizer
	for range 4 {
		slowStore{pagesEach: 0.03, rate: quietDisk}.commit(&p, p.Items())
	}
	assert.Equal(t, p.Items(), mostItems, "batch size after 4 commits")
}

// TestSizerOfBusyDisk: a store that meets a busy disk at its start grows its batches to what takes
// 200 ms, so that there is room for a commit that takes twice as long as the one before.
func TestSizerOfBusyDisk(t *testing.T) {
	var p Sizer
	for n := range 200 {
		took := (slowStore{pagesEach: 1, rate: 100e6}).commit(&p, p.Items())
		must.True(t, took <= 230*time.Millisecond, "commit %d takes %v", n, took)
	}
}
