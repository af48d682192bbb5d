package storage

import (
	"testing"
	"time"
)

// slowStore is a store in virtual time: how much a commit of a number of items changes, and how long
// it takes.
type slowStore struct {
	pagesEach float64       // pages changed for each item
	rate      float64       // bytes a second that the disk takes
	wait      time.Duration // of each commit, whatever it holds
}

func (s slowStore) commit(p *BatchSizer, items int) (took time.Duration) {
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

// TestBatchSizer: on a quiet disk the batch size grows to the bound for any size of an item, and
// follows when that size changes.
func TestBatchSizer(t *testing.T) {
	var p BatchSizer
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

// TestBatchSizerOfSlowDisk: when a disk becomes sixteen times as slow, one commit is long, and all
// others take less than half a second. When it is quiet again, the batch size grows back.
func TestBatchSizerOfSlowDisk(t *testing.T) {
	for _, pagesEach := range []float64{0.3, 1, 3} {
		var p BatchSizer
		for range 100 {
			slowStore{pagesEach: pagesEach, rate: quietDisk}.commit(&p, p.Items())
		}
		before, long := p.Items(), 0
		for range 200 {
			if (slowStore{pagesEach: pagesEach, rate: busyDisk}).commit(&p, p.Items()) >= 500*time.Millisecond {
				long++
			}
		}
		if long > 1 || p.Items() >= before/2 {
			t.Errorf("%v pages an item: %d long commits, and a batch size of %d, %d before", pagesEach, long,
				p.Items(), before)
		}
		for range 120 {
			slowStore{pagesEach: pagesEach, rate: quietDisk}.commit(&p, p.Items())
		}
		if p.Items() < before*8/9 {
			t.Errorf("%v pages an item: a batch size of %d on a quiet disk, %d before", pagesEach, p.Items(), before)
		}
	}
}

// TestBatchSizerOfSlowSyncs: where each commit waits long for its sync, smaller ones would not help.
// The batch size falls no further than to what costs little time.
func TestBatchSizerOfSlowSyncs(t *testing.T) {
	var p BatchSizer
	for range 200 {
		slowStore{pagesEach: 0.1, rate: quietDisk, wait: 400 * time.Millisecond}.commit(&p, p.Items())
	}
	if p.Items() < 15_000 {
		t.Errorf("batch size %d, want at least 15,000", p.Items())
	}
}

// TestBatchSizerOfSmallCommits: commits of few items, which change much for each, do not shrink the
// batch size, nor do commits that change nothing.
func TestBatchSizerOfSmallCommits(t *testing.T) {
	var p BatchSizer
	for range 100 {
		p.Committed(10, 1<<20, time.Millisecond)
		p.Committed(0, 1<<30, time.Second)
		p.Committed(10, 0, time.Second)
	}
	if got := p.Items(); got != firstItems {
		t.Errorf("batch size %d, want %d", got, firstItems)
	}
}

// TestBatchSizerGrowsByLargeCommits: after a slow time, small commits say nothing about large ones.
func TestBatchSizerGrowsByLargeCommits(t *testing.T) {
	var p BatchSizer
	slowStore{pagesEach: 1, rate: busyDisk}.commit(&p, p.Items())
	slow := p.Items()
	for range 100 {
		slowStore{pagesEach: 1, rate: quietDisk}.commit(&p, 10)
	}
	if p.Items() != slow {
		t.Errorf("batch size %d after small commits, %d before", p.Items(), slow)
	}
}

// TestChanged: a commit returns how much it changed, which is more for URLs of many hosts than for
// as many of one.
func TestChanged(t *testing.T) {
	s := openTemp(t, Options{})
	apart := &benchURLs{hosts: 2000}
	var batch Batch
	fillBatch(s, apart, 2000, &batch)
	mustCommit(t, s, &batch)
	changed := func(hosts int) int64 {
		fillBatch(s, &benchURLs{hosts: hosts, n: 10_000}, 500, &batch)
		result, err := s.Commit(&batch)
		if err != nil {
			t.Fatal(err)
		}
		return result.Changed
	}
	many, one := changed(2000), changed(1)
	if one < 4096 || many < 4*one {
		t.Errorf("500 URLs of many hosts changed %d bytes, of one host %d", many, one)
	}
}

// TestKnownLinksChangeNothing: a commit of links to known pages writes no host's row.
func TestKnownLinksChangeNothing(t *testing.T) {
	s := openTemp(t, Options{})
	var batch Batch
	fillBatch(s, &benchURLs{hosts: 500}, 2000, &batch)
	first, err := s.Commit(&batch)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Commit(&batch)
	if err != nil {
		t.Fatal(err)
	}
	if again.Added != 0 || again.Changed > 8*4096 || first.Changed < 50*4096 {
		t.Errorf("%d URLs were new; %d bytes changed, at first %d", again.Added, again.Changed, first.Changed)
	}
}

// TestHostsInStep: if all hosts get their outcomes in step, the rows of only a few of them overflow
// in the same commit.
func TestHostsInStep(t *testing.T) {
	const hosts, urls = 90, 70
	s := openTemp(t, Options{NoSync: true})
	for h := range hosts {
		mustCommit(t, s, &Batch{Found: found(t, s, numbered(benchHostName(h), 0, urls)...)})
	}
	tops := make([]uint32, hosts)
	moved := 0
	for n := range uint32(urls) {
		var b Batch
		for h := range hosts {
			b.Done = append(b.Done, Done{Host: HostID(h + 1), Ordinal: n, Outcome: benchOutcome(uint64(n))})
		}
		mustCommit(t, s, &b)
		together := 0
		for h := range hosts {
			if top := stateTop(t, s, HostID(h+1)); top != tops[h] {
				tops[h] = top
				together++
			}
		}
		if together > hosts/6 {
			t.Errorf("the rows of %d of %d hosts overflowed at outcome %d", together, hosts, n)
		}
		moved += together
	}
	if moved < hosts*3 {
		t.Errorf("rows overflowed %d times", moved)
	}
}

func stateTop(t *testing.T, s *Store, id HostID) uint32 {
	var r hostRow
	if err := s.db.View(func(tx *txn) error { return getRow(tx, id, &r) }); err != nil {
		t.Fatal(err)
	}
	return r.stateTop
}

// TestBatchSizerOfCheapItems: a list in the order of its hosts is in large batches soon.
func TestBatchSizerOfCheapItems(t *testing.T) {
	var p BatchSizer
	for range 4 {
		slowStore{pagesEach: 0.03, rate: quietDisk}.commit(&p, p.Items())
	}
	if p.Items() != mostItems {
		t.Errorf("batch size %d after 4 commits, want %d", p.Items(), mostItems)
	}
}

// TestBatchSizerOfBusyDisk: a store that meets a busy disk at its start grows its batches to what takes
// 200 ms, so that there is room for a commit that takes twice as long as the one before.
func TestBatchSizerOfBusyDisk(t *testing.T) {
	var p BatchSizer
	for n := range 200 {
		if took := (slowStore{pagesEach: 1, rate: 100e6}).commit(&p, p.Items()); took > 230*time.Millisecond {
			t.Fatalf("commit %d takes %v", n, took)
		}
	}
}
