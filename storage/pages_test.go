package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

// branchedStore returns the bytes of a store whose trees have branches.
func branchedStore(t *testing.T) []byte {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{NoSync: true})
	for n := 0; n < 6000; n += 1500 {
		b := Batch{Found: found(t, s, numbered("host.example", n, n+1500)...)}
		for i := range 60 {
			b.Found = append(b.Found, found(t, s, fmt.Sprintf("https://www.host-%d.example/%d", n+i, n))...)
		}
		mustCommit(t, s, &b)
	}
	for n := uint32(0); n < 3000; n += 500 {
		var b Batch
		for i := range uint32(500) {
			b.Done = append(b.Done, Done{Host: 1, Ordinal: n + i, Outcome: Outcome{State: Retrying, At: someTime,
				Due: someTime.Add(time.Hour)}})
		}
		mustCommit(t, s, &b)
	}
	checkClean(t, s)
	mustClose(t, s)
	file := readFile(t, s.Path())
	size := must.Get(boltSize(bytes.NewReader(file)))(t)
	return file[:size]
}

// checkDamaged opens and checks a damaged file, which must neither end the process nor take for
// ever.
func checkDamaged(t *testing.T, file []byte) (texts []string, err error) {
	t.Helper()
	dir := t.TempDir()
	writeStore(t, dir, file)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	report := func(f Finding) { texts = append(texts, f.Text) }
	s, err := Open(dir, Options{ReadOnly: true, MapBytes: 1 << 20})
	if errors.Is(err, ErrCorrupt) {
		return texts, errors.Join(err, CheckDamaged(ctx, dir, report))
	}
	if err != nil {
		return nil, err
	}
	defer mustClose(t, s)
	err = s.Check(ctx, report)
	must.True(t, !errors.Is(err, context.DeadlineExceeded), "the check does not come to an end")
	return texts, err
}

// TestCheckRandomDamage damages a file in many ways: no crash and no endless check.
func TestCheckRandomDamage(t *testing.T) { damageAndCheck(t, 100) }

func damageAndCheck(t *testing.T, rounds int) {
	good := branchedStore(t)
	size := int(binary.LittleEndian.Uint32(good[boltfile.MetaOffset+8:]))
	rng := rand.New(rand.NewPCG(1, 2))
	noticed := 0
	for round := range rounds {
		file := damaged(rng, good, size)
		texts, err := checkDamaged(t, file)
		if len(texts) > 0 || err != nil {
			noticed++
		}
		must.True(t, !t.Failed(), "in round %d", round)
	}
	assert.AtLeast(t, noticed, rounds/2, rounds, "damages were noticed")
}

// damaged returns a copy of a file with one to three damages.
func damaged(rng *rand.Rand, good []byte, size int) []byte {
	file := append([]byte(nil), good...)
	pages := len(file) / size
	random := func() []byte { return binary.LittleEndian.AppendUint64(nil, rng.Uint64()>>rng.IntN(64)) }
	for range 1 + rng.IntN(3) {
		p := file[rng.IntN(pages)*size:][:size]
		switch rng.IntN(8) {
		case 0: // anything anywhere
			copy(p[rng.IntN(size):], random())
		case 1: // in the header
			copy(p[rng.IntN(16):16], random())
		case 2: // in the elements
			copy(p[16+rng.IntN(20*16):], random()[:1+rng.IntN(8)])
		case 3: // a page number, in range
			binary.LittleEndian.PutUint64(p[16+rng.IntN(8)*16+8:], rng.Uint64N(uint64(pages)+2))
		case 4: // a page in the place of another, with its number
			id := binary.LittleEndian.Uint64(p)
			copy(p, file[rng.IntN(pages)*size:][:size])
			binary.LittleEndian.PutUint64(p, id)
		case 5:
			clear(p)
		case 6:
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
		case 7: // what a meta page says, with a right sum
			binary.LittleEndian.PutUint64(file[rng.IntN(2)*size+boltfile.MetaOffset+8*(2+rng.IntN(4)):],
				rng.Uint64N(uint64(pages)+2))
			reseal(file)
		}
	}
	return file
}

// TestCheckPages damages single facts of pages that something refers to.
func TestCheckPages(t *testing.T) {
	good := branchedStore(t)
	size := int(binary.LittleEndian.Uint32(good[boltfile.MetaOffset+8:]))
	dir := t.TempDir()
	writeStore(t, dir, good)
	s := mustOpen(t, dir, Options{ReadOnly: true})
	branch := 0
	must.Do(t, s.db.View(func(tx *txn) error {
		branch = int(tx.Bucket(bucketURL).Bolt.Root()) * size
		return nil
	}))
	mustClose(t, s)
	must.True(t, good[branch+8] == boltfile.Branch, "the url bucket has no branch")
	le := binary.LittleEndian
	self := le.AppendUint64(nil, uint64(branch/size))
	child := int(le.Uint64(good[branch+16+8:])) * size
	tests := []struct {
		name string
		at   int
		with []byte
		want string
	}{
		{"a ring", branch + 16 + 8, self, "is led to twice"},
		{"a page beyond the file", branch + 16 + 8, le.AppendUint64(nil, 1<<40), "is none of the"},
		{"a page number that overflows", branch + 16 + 8, le.AppendUint64(nil, 1<<63+5), "is none of the"},
		{"the meta page", branch + 16 + 8, make([]byte, 8), "is none of the"},
		{"another number", child, le.AppendUint64(nil, 7777), "says that it is page 7777"},
		{"reaching beyond the file", child + 12, le.AppendUint32(nil, 1<<20), "1048576 more"},
		{"neither branch nor leaf", child + 8, []byte{3, 0}, "neither a branch nor a leaf"},
		{"a branch without elements", branch + 10, []byte{0, 0}, "neither a branch nor a leaf"},
		{"too many elements", child + 10, []byte{0xff, 0xfe}, "has a gap"},
		{"a key beyond the page", branch + 16, le.AppendUint32(nil, 1<<30), "beyond its end"},
		{"a value beyond the page", child + 16 + 12, le.AppendUint32(nil, 1<<31), "beyond its end"},
		{"a bucket among rows", child + 16, []byte{1}, "a bucket in place of a row"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			texts, err := checkDamaged(t, patched(good, test.at, test.with))
			assert.True(t, errors.Is(err, ErrCorrupt) && strings.Contains(strings.Join(texts, "\n"), test.want),
				"check finds %q, %v, want something with %q", texts, err, test.want)
		})
	}
}

// TestNewHostsFillPages: hosts that come in the order of their names fill the pages of names and rows, in one commit or
// many. Hosts in random order leave room for the names that come between them, so that pages are not divided again and
// again into a full one and an empty one.
func TestNewHostsFillPages(t *testing.T) {
	const hosts, commits = 20_000, 10
	for _, test := range []struct {
		name        string
		order       func(n int) int
		names, rows float64 // the least part of their pages that is in use
	}{
		{"in order", func(n int) int { return n }, 0.85, 0.85},
		{"random", func(n int) int { return n * 7919 % hosts }, 0.6, 0.85},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openTemp(t, Options{NoSync: true})
			for c := range commits {
				var b Batch
				for n := range hosts / commits {
					name := fmt.Sprintf("site-%05d.example", test.order(c*hosts/commits+n))
					u := weburl.Origin{Scheme: "https", Host: name, Port: 443}.URL("/")
					b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
				}
				mustCommit(t, s, &b)
			}
			all := must.Get(s.Stats(t.Context()))(t)
			for _, b := range all.Buckets {
				least := map[string]float64{"name": test.names, "host": test.rows}[b.Name]
				assert.AtLeast(t, float64(b.InUse)/float64(b.Bytes), least, b.Name, "of the pages is in use")
			}
		})
	}
}
