// Package lists commits the URLs of long lists, of sitemaps and of imports, in the order of their hosts.
package lists

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Committer commits the discoveries of a long list in the order of their hosts, and those of a host
// in the order of the list. A commit writes the rows of each host that it changes as a whole, so a
// list in random order would write them again with every commit. It belongs to one goroutine.
type Committer struct {
	Store  interface{ Fingerprint(weburl.URL) uint64 }
	Sorter *hostsort.Sorter
	Commit func(context.Context, Rows) (Added, error)
	// Retrieve returns what puts a known URL back; false: nothing does. It may be nil if no
	// discovery has Again set.
	Retrieve func(weburl.URL, time.Time) (storage.Done, bool, error)

	size    storage.BatchSizer
	taken   int // since the last commit of all
	encoded []byte
}

// Item is a discovery of a list.
type Item struct {
	storage.Found
	Index int       // in the list, or 0
	Again bool      // if it is known and was given up, denied or excluded, it is put back into its queue
	Put   *Imported // nil: nothing is known of it
}

// applyPut completes the discovery by what another frontier knows.
func (l *Item) applyPut() {
	p := l.Put
	if p == nil {
		return
	}
	if !p.Created.IsZero() && p.Created.Before(l.At) {
		l.Found.At = p.Created
	}
	l.Metadata = p.Metadata
	if !p.Known {
		return
	}
	l.Outcome = &storage.Outcome{State: storage.Fetched, At: l.At}
	if !p.Due.IsZero() {
		l.Outcome.State, l.Outcome.Due = storage.Retrying, p.Due
	}
}

// Take takes a discovery. Its fingerprint, page and time are set when it is committed.
func (h *Committer) Take(l *Item) error {
	h.encoded = l.append(h.encoded[:0])
	h.taken++
	return h.Sorter.Add(l.URL.Host(), h.encoded)
}

// batchBytes bounds the URLs of a batch, in bytes.
const batchBytes = 4 << 20

// Rows are discoveries, and known URLs that are put back, which one commit takes.
type Rows struct {
	Found []storage.Found
	Again []storage.Done
}

// Added is what a commit of them did.
type Added struct {
	Results []storage.InsertResult // of each discovery
	Changed int64                  // see storage.Result
	Took    time.Duration
	Err     error
}

// Batch is what one commit takes of the sorted list.
type Batch struct {
	Rows
	Indexes []int // in the list, of each discovery
	Back    []int // the same of those put back
	Added   Added
	done    chan struct{} // closed when it is committed or has failed
}

func (p *Batch) isEmpty() bool { return len(p.Found)+len(p.Again) == 0 }

// CommitAll commits what was taken, in batches of the size that the commits before suggest, and
// calls each with every one that is committed. The next batch is read while one is committed.
// After an error what was not committed is dropped.
func (h *Committer) CommitAll(ctx context.Context, base storage.Found, each func(*Batch)) (err error) {
	defer func() { err = errors.Join(err, h.Reset()) }()
	if h.taken == 0 {
		return nil
	}
	sorted, err := h.Sorter.Sorted()
	if err != nil {
		return err
	}
	var before, spare *Batch
	finish := func() error {
		if before == nil {
			return nil
		}
		<-before.done
		if before.Added.Err != nil {
			return before.Added.Err
		}
		h.size.Committed(len(before.Found)+len(before.Again), before.Added.Changed, before.Added.Took)
		each(before)
		before, spare = nil, before
		return nil
	}
	for more := true; more; {
		if before != nil && len(before.Again) > 0 { // what it puts back must not be looked up before
			if err := finish(); err != nil {
				return err
			}
		}
		next := spare.reuse()
		spare = nil
		more, err = h.fill(sorted, next, base)
		if err = errors.Join(finish(), err); err != nil {
			return err
		}
		if !next.isEmpty() {
			before = next
			go h.run(ctx, next)
		}
	}
	return finish()
}

// run commits a batch.
func (h *Committer) run(ctx context.Context, p *Batch) {
	defer close(p.done)
	got, err := h.Commit(ctx, p.Rows)
	p.Added, p.Added.Err = got, err
}

// Reset drops what was taken.
func (h *Committer) Reset() error {
	h.taken = 0
	return h.Sorter.Reset()
}

// reuse returns an empty batch with the memory of a committed one; nil has none.
func (p *Batch) reuse() *Batch {
	next := &Batch{done: make(chan struct{})}
	if p != nil {
		clear(p.Found)
		next.Found, next.Again = p.Found[:0], p.Again[:0]
		next.Indexes, next.Back = p.Indexes[:0], p.Back[:0]
	}
	return next
}

// fill moves sorted discoveries to a batch. It returns false behind the last one.
func (h *Committer) fill(sorted *hostsort.Sorted, p *Batch, base storage.Found) (more bool, err error) {
	retrieved := make(map[storage.Position]bool) // a list may name a URL twice
	for size := 0; len(p.Found)+len(p.Again) < h.size.Items() && size < batchBytes; {
		host, record, err := sorted.Next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if len(p.Indexes)%64 == 0 {
			runtime.Gosched() // a batch takes milliseconds, in which requests begin
		}
		l := Item{Found: base}
		if err := l.decode(host, record); err != nil {
			return false, fmt.Errorf("read a list sorted by host: %w", err)
		}
		l.applyPut()
		size += len(l.URL.String()) + len(l.Metadata)
		if l.Again {
			known, back, err := h.Retrieve(l.URL, base.At)
			if err != nil {
				return false, err
			}
			if at := (storage.Position{Host: known.Host, Ordinal: known.Ordinal}); back && !retrieved[at] {
				retrieved[at] = true
				p.Again, p.Back = append(p.Again, known), append(p.Back, l.Index)
				continue
			}
		}
		l.Fingerprint = h.fingerprint(&l.Found)
		p.Found, p.Indexes = append(p.Found, l.Found), append(p.Indexes, l.Index)
	}
	return true, nil
}

// fingerprint returns that of a discovery without its session ids.
func (h *Committer) fingerprint(f *storage.Found) uint64 {
	if f.Stripped == "" {
		return h.Store.Fingerprint(f.URL)
	}
	return h.Store.Fingerprint(f.URL.Origin().URL(f.Stripped))
}

// The flags of an encoded discovery.
const (
	listedSecure = 1 << iota
	listedPort   // not the usual one
	listedStripped
	listedSitemap
	listedListed
	listedModified
	listedAgain
	listedPut
)

// Flags beside the frequency of a discovery, which takes three bits.
const (
	listedFrom = 1 << (3 + iota)
	listedSeed
)

// append encodes a discovery without its host: flags, index, depth, priority, frequency with flags, its seed, path and
// query with their length, then what the flags say: port, text without session ids, time of the
// last change, and what another frontier knows of it.
func (l *Item) append(b []byte) []byte {
	usual, secure := uint16(80), l.URL.Scheme() == "https"
	if secure {
		usual = 443
	}
	flags := byte(0)
	for _, f := range []struct {
		flag byte
		set  bool
	}{
		{listedSecure, secure}, {listedPort, l.URL.Port() != usual}, {listedStripped, l.Stripped != ""},
		{listedSitemap, l.Sitemap}, {listedListed, l.Listed}, {listedModified, !l.Modified.IsZero()},
		{listedAgain, l.Again}, {listedPut, l.Put != nil},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(l.Index))
	b = binary.AppendUvarint(b, uint64(l.Depth))
	more := byte(l.Frequency)
	if l.From != (storage.SeedRef{}) {
		more |= listedFrom
	}
	if l.Seed {
		more |= listedSeed
	}
	b = append(b, byte(l.Priority), more)
	if l.From != (storage.SeedRef{}) {
		b = append(append(b, l.From.ID[:]...), l.From.Outside)
	}
	b = appendText(b, l.URL.RequestURI())
	if flags&listedPort != 0 {
		b = binary.BigEndian.AppendUint16(b, l.URL.Port())
	}
	if flags&listedStripped != 0 {
		b = appendText(b, l.Stripped)
	}
	if flags&listedModified != 0 {
		b = binary.AppendVarint(b, l.Modified.Unix())
	}
	if p := l.Put; p != nil {
		known := byte(0)
		if p.Known {
			known = 1
		}
		b = append(b, known)
		b = binary.AppendUvarint(b, uint64(storage.Seconds(p.Created)))
		b = binary.AppendUvarint(b, uint64(storage.Seconds(p.Due)))
		b = appendText(b, string(p.Metadata))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decode decodes what append has encoded.
func (l *Item) decode(host string, record []byte) error {
	d := wire.NewDecoder(record)
	flags := d.Byte()
	l.Index = int(d.Uvarint())
	l.Depth = uint16(d.Uvarint())
	l.Priority = int8(d.Byte())
	more := d.Byte()
	l.Frequency, l.Seed = storage.Frequency(more&7), more&listedSeed != 0
	if more&listedFrom != 0 {
		copy(l.From.ID[:], d.Bytes(len(l.From.ID)))
		l.From.Outside = d.Byte()
	}
	origin := weburl.Origin{Scheme: "http", Host: host, Port: 80}
	if flags&listedSecure != 0 {
		origin.Scheme, origin.Port = "https", 443
	}
	uri := string(d.Long())
	if flags&listedPort != 0 {
		origin.Port = d.Uint16()
	}
	if flags&listedStripped != 0 {
		l.Stripped = string(d.Long())
	}
	if flags&listedModified != 0 {
		l.Modified = time.Unix(d.Varint(), 0)
	}
	if flags&listedPut != 0 {
		l.Put = &Imported{Known: d.Byte() != 0}
		l.Put.Created = storage.FromSeconds(uint32(d.UvarintMax(math.MaxUint32)))
		l.Put.Due = storage.FromSeconds(uint32(d.UvarintMax(math.MaxUint32)))
		l.Put.Metadata = bytes.Clone(d.Long())
	}
	l.URL = origin.URL(uri)
	l.Sitemap, l.Listed, l.Again = flags&listedSitemap != 0, flags&listedListed != 0, flags&listedAgain != 0
	return d.End()
}
