package crawl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// listCommitter commits the discoveries of a long list in the order of their hosts, and those of a host
// in the order of the list. A commit writes the rows of each host that it changes as a whole, so a
// list in random order would write them again with every commit. It belongs to one goroutine.
type listCommitter struct {
	store  fingerprinter
	sorter *hostsort.Sorter
	size   storage.BatchSizer
	commit func(context.Context, *addition) (added, error)
	// retrieve returns what puts a known URL back; false: nothing does. It may be nil if no
	// discovery has again set.
	retrieve func(weburl.URL, time.Time) (storage.Done, bool, error)

	taken   int // since the last commit of all
	encoded []byte
}

// fingerprinter is the store as far as listCommitter reads it.
type fingerprinter interface{ Fingerprint(weburl.URL) uint64 }

// listItem is a discovery of a list.
type listItem struct {
	storage.Found
	index int       // in the list, or 0
	again bool      // if it is known and was given up, denied or excluded, it is put back into its queue
	put   *Imported // nil: nothing is known of it
}

// applyPut completes the discovery by what another frontier knows.
func (l *listItem) applyPut() {
	p := l.put
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

// take takes a discovery. Its fingerprint, page and time are set when it is committed.
func (h *listCommitter) take(l *listItem) error {
	h.encoded = l.append(h.encoded[:0])
	h.taken++
	return h.sorter.Add(l.URL.Host(), h.encoded)
}

// hostBatchBytes bounds the URLs of a batch, in bytes.
const hostBatchBytes = 4 << 20

// hostBatch is what one commit takes of the sorted list.
type hostBatch struct {
	addition
	indexes []int // in the list, of each discovery
	back    []int // the same of those put back
	added   added
	done    chan struct{} // closed when it is committed or has failed
}

func (p *hostBatch) isEmpty() bool { return len(p.found)+len(p.again) == 0 }

// commitAll commits what was taken, in batches of the size that the commits before suggest, and
// calls each with every one that is committed. The next batch is read while one is committed.
// After an error what was not committed is dropped.
func (h *listCommitter) commitAll(ctx context.Context, base storage.Found, each func(*hostBatch)) (err error) {
	defer func() { err = errors.Join(err, h.reset()) }()
	if h.taken == 0 {
		return nil
	}
	sorted, err := h.sorter.Sorted()
	if err != nil {
		return err
	}
	var before, spare *hostBatch
	finish := func() error {
		if before == nil {
			return nil
		}
		<-before.done
		if before.added.err != nil {
			return before.added.err
		}
		h.size.Committed(len(before.found)+len(before.again), before.added.changed, before.added.took)
		each(before)
		before, spare = nil, before
		return nil
	}
	for more := true; more; {
		if before != nil && len(before.again) > 0 { // what it puts back must not be looked up before
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
func (h *listCommitter) run(ctx context.Context, p *hostBatch) {
	defer close(p.done)
	got, err := h.commit(ctx, &p.addition)
	p.added, p.added.err = got, err
}

// reset drops what was taken.
func (h *listCommitter) reset() error {
	h.taken = 0
	return h.sorter.Reset()
}

// reuse returns an empty batch with the memory of a committed one; nil has none.
func (p *hostBatch) reuse() *hostBatch {
	next := &hostBatch{done: make(chan struct{})}
	if p != nil {
		clear(p.found)
		next.found, next.again = p.found[:0], p.again[:0]
		next.indexes, next.back = p.indexes[:0], p.back[:0]
	}
	return next
}

// fill moves sorted discoveries to a batch. It returns false behind the last one.
func (h *listCommitter) fill(sorted *hostsort.Sorted, p *hostBatch, base storage.Found) (more bool, err error) {
	retrieved := make(map[storage.Position]bool) // a list may name a URL twice
	for size := 0; len(p.found)+len(p.again) < h.size.Items() && size < hostBatchBytes; {
		host, record, err := sorted.Next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		l := listItem{Found: base}
		if err := l.decode(host, record); err != nil {
			return false, fmt.Errorf("read a list sorted by host: %w", err)
		}
		l.applyPut()
		size += len(l.URL.String()) + len(l.Metadata)
		if l.again {
			known, back, err := h.retrieve(l.URL, base.At)
			if err != nil {
				return false, err
			}
			if at := (storage.Position{Host: known.Host, Ordinal: known.Ordinal}); back && !retrieved[at] {
				retrieved[at] = true
				p.again, p.back = append(p.again, known), append(p.back, l.index)
				continue
			}
		}
		l.Fingerprint = h.fingerprint(&l.Found)
		p.found, p.indexes = append(p.found, l.Found), append(p.indexes, l.index)
	}
	return true, nil
}

// fingerprint returns that of a discovery without its session ids.
func (h *listCommitter) fingerprint(f *storage.Found) uint64 {
	if f.Stripped == "" {
		return h.store.Fingerprint(f.URL)
	}
	return h.store.Fingerprint(f.URL.Origin().URL(f.Stripped))
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
func (l *listItem) append(b []byte) []byte {
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
		{listedAgain, l.again}, {listedPut, l.put != nil},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(l.index))
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
	if p := l.put; p != nil {
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
func (l *listItem) decode(host string, record []byte) error {
	d := wire.NewDecoder(record)
	flags := d.Byte()
	l.index = int(d.Uvarint())
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
		l.put = &Imported{Known: d.Byte() != 0}
		l.put.Created = storage.FromSeconds(uint32(d.UvarintMax(math.MaxUint32)))
		l.put.Due = storage.FromSeconds(uint32(d.UvarintMax(math.MaxUint32)))
		l.put.Metadata = bytes.Clone(d.Long())
	}
	l.URL = origin.URL(uri)
	l.Sitemap, l.Listed, l.again = flags&listedSitemap != 0, flags&listedListed != 0, flags&listedAgain != 0
	return d.End()
}
