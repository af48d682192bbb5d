package storage

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

// image is what a power cut leaves of a file in the middle of a commit.
type image struct {
	name     string
	file     []byte
	old, new bool // may hold the commit before, the commit itself
}

// images returns the files that a power cut during a commit can leave. bbolt writes the pages,
// syncs, writes the meta page, syncs: writes after the last sync may be complete, missing or
// partial, in any order. A kill leaves fewer kinds.
func images(rng *rand.Rand, before, after []byte, page int) []image {
	metas := func(file []byte, n int) []byte { // as much of the new meta pages
		for at := range 2 {
			copy(file[at*page:at*page+n], after[at*page:])
		}
		return file
	}
	anywhere := rng.IntN(page + 1)
	all := []image{
		{"pages in part, meta missing", tear(rng, before, after, page), true, false},
		{"pages in part, meta torn",
			metas(tear(rng, before, after, page), boltfile.MetaOffset+1+rng.IntN(boltfile.MetaSize-1)),
			true, false},
		{"pages there, meta missing", append(bytes.Clone(before[:2*page]), after[2*page:]...), true, false},
		{"pages there, meta torn anywhere", metas(append(bytes.Clone(before[:2*page]), after[2*page:]...), anywhere),
			true, true},
		{"all there", after, false, true},
	}
	if short := tear(rng, before, after, page); len(after) > len(before) {
		all = append(all, image{"the file not grown, pages in part, meta missing", short[:len(before)], true, false})
	}
	return all
}

// TestPowerCutAgainstModel cuts random commits of a store at many points. Each file opens at the
// commit before or at the commit, is sound, has counters that equal a full count and every row that
// the model has, and goes on from there.
func TestPowerCutAgainstModel(t *testing.T) { cutPower(t, 1) }

// cutPower does so for a number of seeds. The images have what a sync would keep, so the files are
// not synced.
func cutPower(t *testing.T, seeds uint64) {
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 5))
		o := Options{NoSync: true, MapBytes: 1 << 20, MaxHostURLs: 300, MaxQueries: 4, MaxSameDigest: 3}
		d := &driver{dir: t.TempDir(), model: newModel()}
		d.store = mustOpen(t, d.dir, o)
		d.model.limits = o.limits()
		for n := range 10 {
			if n == 5 {
				age(t, d.store)
				d.model.age()
			}
			b := d.model.randomBatch(rng, 30*n, d.store.Fingerprint)
			if n < 5 {
				b.Purges = nil // a file of version 1 cannot say what was deleted
			}
			then, before := d.store.Counters(), readFile(t, d.store.Path())
			mustCommit(t, d.store, &b)
			now, after := d.store.Counters(), readFile(t, d.store.Path())
			d.model.apply(&b)
			for _, cut := range images(rng, before, after, d.store.db.PageSize()) {
				reopenCut(t, cut, then, now, &b, &driver{dir: t.TempDir(), model: d.model}, o)
			}
		}
		mustClose(t, d.store)
	}
}

// reopenCut opens what a cut left, repeats the commit if it is missing, and compares the store with
// the model, which has it.
func reopenCut(t *testing.T, cut image, then, now Counters, b *Batch, d *driver, o Options) {
	t.Helper()
	writeStore(t, d.dir, cut.file)
	s, err := Open(d.dir, o)
	must.Do(t, err, cut.name)
	defer func() { mustClose(t, s) }()
	d.store = s
	texts := findings(t, s)
	must.True(t, len(texts) <= 0, "%s: check finds %q", cut.name, texts)
	switch got := s.Counters(); {
	case got == now && cut.new, got == then && cut.old:
	default:
		t.Fatalf("%s: counters are %+v, before the commit %+v, after it %+v", cut.name, got, then, now)
	}
	if !cut.new {
		mustCommit(t, s, b)
		checkClean(t, s)
	}
	if !cut.old || !cut.new { // else it may be at either
		d.compare(t)
	}
}
