package storage

import (
	"fmt"
	"math"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// tailRef locates one entry of a host's tail.
type tailRef struct {
	start   int
	uri     int
	length  int
	origin  uint8
	session bool // the text is the one without a session id; the full one follows
}

// indexTail locates every entry of the tail unless the index is complete.
func (w *hostWork) indexTail(r *hostRow) error {
	if len(w.index) > 0 {
		return nil
	}
	for d := wire.NewDecoder(w.tail); d.Len() > 0; {
		t := tailRef{start: len(w.tail) - d.Len()}
		flags, uri := entryKey(&d)
		t.uri, t.length, t.origin = len(w.tail)-d.Len()-len(uri), len(uri), flags&entryOrigin
		_, t.session = skipFacts(&d, flags)
		if !d.OK() {
			return fmt.Errorf("%w: tail of the host cannot be read", ErrCorrupt)
		}
		w.index = append(w.index, t)
	}
	if len(w.index) != int(r.next-r.spilled) {
		return fmt.Errorf("%w: the host's tail holds %d URLs, its row says %d",
			ErrCorrupt, len(w.index), r.next-r.spilled)
	}
	return nil
}

// found adds a discovered URL to its host unless it is known.
func (w *writer) found(r *hostRow, f *Found) error {
	origins := len(r.origins)
	origin, ok := r.originIndex(f.URL.Origin())
	if !ok {
		w.result.Refused++
		return nil
	}
	e := Entry{
		Origin: origin, RequestURI: f.URL.RequestURI(), Stripped: f.Stripped, Depth: f.Depth, Redirects: f.Redirects,
		Seed: f.Seed, Sitemap: f.Sitemap, Frequency: f.Frequency, Priority: f.Priority, Room: f.Room,
		ViaHost: f.ViaHost, ViaOrdinal: f.ViaOrdinal, FirstSeen: f.At,
		From: f.From,
	}
	known, ordinal, err := w.identify(r, f, &e)
	switch {
	case err != nil:
		return err
	case known == sameText && f.Outcome != nil:
		if e, err = w.entry(r, ordinal); err != nil {
			return err
		}
		w.result.Set = append(w.result.Set, Position{r.id, ordinal})
		return w.set(r, f, ordinal, &e)
	case known == sameText:
		return w.noticed(r, f, ordinal, &e)
	case known == sameButSession && f.Redirects == 0:
		w.refuse(TrapSession, f.URL)
		return nil
	case r.next == math.MaxUint32:
		w.result.Refused++
		return nil
	}
	if trap := w.trapped(r, origin, f); trap != 0 {
		r.origins = r.origins[:origins]
		w.refuse(trap, f.URL)
		return nil
	}
	e.Ordinal = r.next
	if err := w.add(r, &e); err != nil {
		return err
	}
	if f.Outcome != nil {
		return w.set(r, f, e.Ordinal, &e)
	}
	if len(f.Metadata) > 0 {
		return w.putMetadata(r.id, e.Ordinal, f.Metadata)
	}
	return nil
}

// entry decodes a URL of the host at hand.
func (w *hostWork) entry(r *hostRow, ordinal uint32) (Entry, error) {
	var b []byte
	ok := true
	if ordinal < r.spilled {
		b, ok = nthEntry(w.urlRows.Get(appendBlockKey(w.key[:0], r.id, ordinal)), int(ordinal%blockSize))
	} else if err := w.indexTail(r); err != nil {
		return Entry{}, err
	} else {
		b = w.tail[w.index[ordinal-r.spilled].start:]
	}
	if ok {
		if e, _, ok := decodeEntry(b, r.id, ordinal); ok && int(e.Origin) < len(r.origins) {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("%w: URL %d of the host cannot be read", ErrCorrupt, ordinal)
}

// insertResult returns the result of the last insert, given the Result before it.
func (w *hostWork) insertResult(before *Result) InsertResult {
	switch {
	case w.result.Added > before.Added:
		return InsertAdded
	case w.result.Refused > before.Refused:
		return InsertRefused
	case w.result.Trapped > before.Trapped:
		return InsertTrapped
	}
	return InsertKnown
}

// add appends a URL to the tail of its host.
func (w *hostWork) add(r *hostRow, e *Entry) error {
	if err := w.indexTail(r); err != nil {
		return err
	}
	if !w.ownTail {
		w.tails = append(w.tails[:0], w.tail...)
		w.tail, w.ownTail = w.tails, true
	}
	start := len(w.tail)
	w.tail = appendEntry(w.tail, r.id, e)
	w.tails = w.tail
	d := wire.NewDecoder(w.tail[start:])
	_, text := entryKey(&d)
	w.index = append(w.index, tailRef{
		start: start, uri: len(w.tail) - d.Len() - len(text), length: len(text),
		origin: e.Origin, session: e.Stripped != "",
	})
	if err := w.enqueue(r, e, r.next); err != nil {
		return err
	}
	r.next++
	w.counters.URLs++
	w.count(r, e.Priority, Queued, 1)
	w.result.Added++
	if n := len(w.index); n >= maxTail || n >= blockSize && len(w.tail) >= maxTailBytes {
		return w.spill(r)
	}
	return nil
}

// enqueue puts a new URL into the queue of its origin: behind the cursor, or into a due row if it has a priority.
func (w *hostWork) enqueue(r *hostRow, e *Entry, ordinal uint32) error {
	origin := &r.origins[e.Origin]
	if e.Priority == 0 {
		origin.Queued++
		return nil
	}
	origin.Due++
	origin.NextDue = dueAtOnce
	return w.due.Put(appendDueKey(w.key[:0], r.id, e.Origin, e.Priority, dueAtOnce, ordinal), nil)
}

// match is how far two URLs are equal.
type match uint8

const (
	different      match = iota
	sameButSession       // equal without session ids
	sameText
)

// identify looks for a discovered URL among the URLs of its host. A URL with a session id is known if its form without
// is known, too. A redirect may lead from one form to the other, so the target of a redirect is identified by its full
// text. For equal texts, identify returns the ordinal of the known URL.
func (w *hostWork) identify(r *hostRow, f *Found, e *Entry) (known match, ordinal uint32, err error) {
	if e.Stripped == "" {
		known, ordinal, err = w.known(r, e.Origin, e.RequestURI, e.RequestURI, f.Fingerprint)
		if known == sameButSession {
			known = different // a URL without a session id is compared by its full text
		}
		return known, ordinal, err
	}
	known, ordinal, err = w.known(r, e.Origin, e.RequestURI, e.RequestURI, w.store.Fingerprint(f.URL))
	if err == nil && known != sameText {
		known, ordinal, err = w.known(r, e.Origin, e.Stripped, e.RequestURI, f.Fingerprint)
	}
	if f.Redirects > 0 {
		e.Stripped = ""
	}
	return known, ordinal, err
}

// known looks for a URL by its fingerprint and in the host's tail, first by its identifying text
// and then by its full text. A fingerprint alone never decides.
func (w *hostWork) known(r *hostRow, origin uint8, text, full string, fingerprint uint64) (match, uint32, error) {
	best, ordinal, err := w.spilled(r, origin, text, full, fingerprint)
	if err != nil || best == sameText {
		return best, ordinal, err
	}
	if err := w.indexTail(r); err != nil {
		return different, 0, err
	}
	for i := range w.index {
		t := &w.index[i]
		if t.origin == origin && string(w.tail[t.uri:t.uri+t.length]) == text {
			if best = max(best, compareFull(w.tail[t.start:], t.session, text, full)); best == sameText {
				return best, r.spilled + uint32(i), nil
			}
		}
	}
	return best, 0, nil
}

// spilled looks for a URL among those that have moved out of the host's row.
func (w *hostWork) spilled(r *hostRow, origin uint8, text, full string, fingerprint uint64) (match, uint32, error) {
	if r.spilled == 0 {
		return different, 0, nil
	}
	best := different
	w.hits = seenOrdinals(w.seenBlock(r.id, fingerprint).items, fingerprint, w.hits[:0])
	for _, ordinal := range w.hits {
		if ordinal < r.first {
			continue
		}
		b, ok := nthEntry(w.urlRows.Get(appendBlockKey(w.key[:0], r.id, ordinal)), int(ordinal%blockSize))
		if !ok {
			return different, 0, fmt.Errorf("%w: URL %d of the host is missing", ErrCorrupt, ordinal)
		}
		if sameURL(b, origin, text) {
			if best = max(best, compareFull(b, true, text, full)); best == sameText {
				return best, ordinal, nil
			}
		}
	}
	return best, 0, nil
}

// compareFull compares a URL with the first encoded entry, which has the same identifying text.
func compareFull(b []byte, session bool, text, full string) match {
	if session {
		stored, ok := sessionURI(b)
		if ok {
			text = string(stored)
		}
	}
	if text == full {
		return sameText
	}
	return sameButSession
}

// spill moves the whole blocks of the tail into the url and seen buckets.
func (w *hostWork) spill(r *hostRow) error {
	whole := len(w.index) / blockSize * blockSize
	w.items = w.items[:0]
	for i := range whole {
		t := w.index[i]
		if r.spilled+uint32(i) < r.first {
			continue
		}
		o := r.origins[t.origin]
		w.items = append(w.items, seenItem{
			fingerprint: fingerprint(&w.store.rows, o.secure, o.port, w.tail[t.uri:t.uri+t.length]),
			ordinal:     r.spilled + uint32(i),
		})
	}
	for i := 0; i < whole; i += blockSize {
		end := len(w.tail)
		if i+blockSize < len(w.index) {
			end = w.index[i+blockSize].start
		}
		key := appendBlockKey(w.key[:0], r.id, r.spilled+uint32(i))
		if err := w.url.Put(key, w.tail[w.index[i].start:end]); err != nil {
			return err
		}
	}
	if err := w.addSeen(r.id, w.items); err != nil {
		return err
	}
	r.spilled += uint32(whole)
	cut := len(w.tail)
	if whole < len(w.index) {
		cut = w.index[whole].start
	}
	w.tail = append(w.tail[:0], w.tail[cut:]...)
	w.index = w.index[:0]
	return w.indexTail(r)
}
