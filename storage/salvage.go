//go:build !core

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// SalvageOptions are those of Salvage.
type SalvageOptions struct {
	// Lost returns the encoded politeness that a host begins with whose own is lost. Nil: none.
	Lost func(host string) []byte
	// Moved returns a mark as it is when the ordinals of hosts have moved: those of URLs that are lost are given to the
	// next ones. Nil: marks have no ordinals.
	Moved func(name string, value []byte, to func(HostID, uint32) uint32) []byte
	// Damaged is called for each host that lost rows. It may be nil.
	Damaged func(HostLoss)
}

// HostLoss is what was lost of a host.
type HostLoss struct {
	Host     string // empty: not even the name is known
	URLs     uint32 // that were lost; they are new ones when they are found again
	Outcomes uint32 // of URLs that were kept: they are requested again
	Row      bool   // all that was known of the host itself, and the URLs and outcomes that were in its row
}

// Salvaged is what Salvage came to.
type Salvaged struct {
	Counters       Counters       // of the new database
	Pages          int            // that were damaged
	Rows           map[string]int // that were damaged, in pages that were not, by bucket
	Hosts, Unnamed int            // hosts that lost something, and those without even a name
	URLs, Outcomes uint64         // that were lost
	Marks          bool           // positions, opt-outs and other commands may be lost
	Policies       bool           // robots records may be lost
	Uncounted      bool           // the counters were lost, so more URLs may be than are counted here
}

// Whole reports whether nothing was lost.
func (s *Salvaged) Whole() bool { return s.Pages == 0 && len(s.Rows) == 0 && s.Hosts == 0 }

// ErrShard says that a database is one shard of a cluster.
var ErrShard = errors.New("it is that of a shard of a cluster")

// Salvage makes a new database in the directory dir of what is whole in the one at path, which may be damaged anywhere
// and is only read. It takes a row only with its checksum, from the pages that the database leads to and from those
// that it led to before a page above them was damaged. Hosts that lost rows are built again from what is left of them,
// with the same ids. The new file gets its name when it is complete and durable. No process may have the database
// open. A database of before version 5 has no checksums: there what can be decoded counts as whole.
//
// The error is ErrShard for a shard of a cluster, which restores itself; ErrNotDatabase if no meta page can be read.
func Salvage(ctx context.Context, path, dir string, o SalvageOptions) (*Salvaged, error) {
	target := filepath.Join(dir, FileName)
	if _, err := os.Lstat(target); err == nil {
		return nil, fmt.Errorf("%s: %w", target, os.ErrExist)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	part, err := os.MkdirTemp(dir, "salvage-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(part)
	s := &salvage{
		ctx: ctx, o: o, raw: filepath.Join(part, "rows"), dir: filepath.Join(part, "new"), like: path,
		old: make(map[HostID]bool), report: &Salvaged{Rows: make(map[string]int)},
	}
	for _, step := range []func() error{s.gather, s.build} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("salvage %s: %w", path, spaceError(err))
		}
	}
	if err := os.Rename(filepath.Join(s.dir, FileName), target); err != nil {
		return nil, err
	}
	return s.report, system.SyncDir(dir)
}

// salvage is one call of Salvage. Its steps are gather and build.
type salvage struct {
	ctx    context.Context
	o      SalvageOptions
	like   string // the damaged file
	raw    string // of the rows that are whole, as they are
	dir    string // of the new database
	report *Salvaged

	key     [keySize]byte
	most    HostID              // that the file has room for: ids are dense
	last    HostID              // the greatest id
	damaged map[HostID]string   // hosts that are not whole, by name; empty: it is lost
	old     map[HostID]bool     // hosts whose rows may be those of an earlier commit
	kept    map[HostID][]uint32 // their ordinals in the damaged database that were brought over
}

// gather copies the rows that are whole to a file of their own.
func (s *salvage) gather() error {
	f, m, err := openPages(s.like)
	if errors.Is(err, ErrTruncated) { // the pages that are missing count as damaged
		if f, err = os.Open(s.like); err == nil {
			m = boltfile.Newest(boltfile.Metas(f))
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	const leastHost = 64 // bytes of the rows of a host
	s.most = HostID(min(int64(m.Pages)*m.PageSize/leastHost, 1<<31))
	return writeDatabase(s.raw, s.like, func(to *rowWriter) error {
		g := gatherer{salvage: s, rows: to, summed: hasSums(f, m)}
		g.walk = boltfile.Walk{Ctx: s.ctx, File: f, Meta: m, Leaves: boltfile.Everything, Report: g.page, Row: g.row}
		err := g.begin(buckets()...)
		if err == nil {
			err = g.walk.Run()
		}
		if err == nil && g.summed {
			err = g.orphans()
		}
		if err = errors.Join(err, g.err); err == nil {
			err = g.nameHosts()
		}
		return err
	})
}

// gatherer takes rows out of a damaged file.
type gatherer struct {
	*salvage
	walk   boltfile.Walk
	rows   *rowWriter
	summed bool
	bucket string
	err    error // of the new file

	earlier  bool                 // the rows at hand may be those of earlier commits
	versions map[string]time.Time // of such rows that were taken, by bucket and key: what grows with each commit
}

// page counts a damaged page.
func (g *gatherer) page(bucket, _ string) {
	g.report.Pages++
	g.lost(bucket)
}

// lost notes that rows of a bucket may be lost.
func (g *gatherer) lost(bucket string) {
	switch bucket {
	case "":
		g.report.Marks, g.report.Policies = true, true // nobody knows of what it was
	case string(bucketMark), string(bucketScope):
		g.report.Marks = true
	case string(bucketRobots), string(bucketRobotsHistory):
		g.report.Policies = true
	}
}

// row takes a row if it is whole.
func (g *gatherer) row(bucket string, k, v []byte) {
	value, ok := v, true
	if g.summed && !rowfile.HasNoSum([]byte(bucket), k) {
		value, ok = rowfile.WithoutSum(rowfile.SumSeed([]byte(bucket)), k, v)
	}
	switch {
	case g.err != nil:
	case ok && isBucket(bucket):
		g.err = errors.Join(g.begin([]byte(bucket)), g.rows.Put(k, value))
	case isBucket(bucket) || !g.orphan(k, v): // else the name of the bucket is damaged
		g.report.Rows[bucket]++
		g.lost(bucket)
	}
}

func isBucket(name string) bool {
	return slices.ContainsFunc(buckets(), func(b []byte) bool { return string(b) == name })
}

// begin has the following rows go into the last of the buckets. It makes all of them.
func (g *gatherer) begin(names ...[]byte) error {
	for _, name := range names {
		if string(name) == g.bucket && g.rows.Tx != nil {
			continue
		}
		if err := g.rows.Begin(name); err != nil {
			return err
		}
		g.bucket = string(name)
	}
	return nil
}

// orphans takes the rows of leaves that nothing leads to any more, and that are not free. If the list of free pages
// cannot be read, these rows may be those of earlier commits.
func (g *gatherer) orphans() error {
	least := 1 // damaged pages, below which there may be others
	if g.earlier = !g.walk.FreeKnown; g.earlier {
		least++ // the list is one
		g.versions = make(map[string]time.Time)
	}
	if g.report.Pages < least {
		return nil
	}
	g.walk.Report = func(string, string) {} // what leads there was counted
	for id := uint64(2); id < g.walk.Meta.Pages && g.err == nil; id++ {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		g.walk.EachRow(id, func(k, v []byte) { g.orphan(k, v) })
	}
	return g.err
}

// orphan takes a row of the bucket that its checksum names, unless there is one with that key. It reports false if the
// row is not whole.
func (g *gatherer) orphan(k, v []byte) bool {
	name, value, ok := bucketOf(k, v)
	if !ok || g.err != nil {
		return ok
	}
	if g.earlier && !staysTrue(name) {
		g.lost(string(name))
		return true
	}
	if g.err = g.begin(name); g.err == nil && (g.earlier && g.isLater(name, k, value) || !g.rows.Bucket.Has(k)) {
		g.err = g.rows.Put(k, value)
	}
	return true
}

// staysTrue reports whether the rows of a bucket are of use although a later commit may have changed them. Others would
// be wrong then: a robots.txt, a position, a URL that is due.
func staysTrue(bucket []byte) bool {
	for _, name := range [][]byte{bucketName, bucketHost, bucketURL, bucketSeen, bucketState, bucketTrap,
		bucketMetadata} {
		if bytes.Equal(name, bucket) {
			return true
		}
	}
	return false
}

// isLater reports whether a row of an unknown commit replaces the one at hand, which is of an unknown one too and
// earlier.
func (g *gatherer) isLater(bucket, k, v []byte) bool {
	at := time.Unix(0, 0)
	switch string(bucket) {
	case string(bucketHost):
		var r hostRow
		if _, ok := r.decodeHead(hostOfKey(k), v); ok {
			at = time.Unix(int64(r.next), int64(r.requests)) // both only grow
		}
		g.old[hostOfKey(k)] = g.old[hostOfKey(k)] || !g.rows.Bucket.Has(k)
	case string(bucketState):
		s, _ := decodeSlots(v)
		for _, body := range s.body {
			if o, _, ok := DecodeOutcome(body); ok && o.At.After(at) {
				at = o.At
			}
		}
	default:
		return false
	}
	id := string(bucket) + string(k)
	before, known := g.versions[id]
	if !known && g.rows.Bucket.Has(k) || known && !at.After(before) {
		return false
	}
	g.versions[id] = at
	return true
}

// nameHosts makes the rows of bucket name that are lost again, from the rows of their hosts.
func (g *gatherer) nameHosts() error {
	if err := g.begin(bucketHost); err != nil {
		return err
	}
	names := make(map[string][]byte)
	known := g.rows.Tx.Bucket(bucketName)
	err := g.rows.Bucket.Each(func(k, v []byte) error {
		var r hostRow
		if _, ok := r.decodeHead(hostOfKey(k), v); ok && len(k) == hostKeySize {
			if name := weburl.ReverseHost(string(r.name)); !known.Has([]byte(name)) {
				names[name] = bytes.Clone(k)
			}
		}
		return g.ctx.Err()
	})
	if err == nil {
		err = g.begin(bucketName)
	}
	return errors.Join(err, putSorted(g.rows, names))
}
