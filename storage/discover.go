package storage

import "fmt"

// tailRef locates one entry of a host's tail.
type tailRef struct {
	start  int
	uri    int
	length int
	origin uint8
}

// indexTail locates every entry of the tail, so that each of the host's
// discoveries is compared with texts of its own length only.
func (w *writer) indexTail(r *hostRow) error {
	rest := w.tail
	for len(rest) > 0 {
		flags, uri, facts, ok := entryKey(rest)
		if ok {
			w.index = append(w.index, tailRef{
				start: len(w.tail) - len(rest), uri: cap(w.tail) - cap(uri), length: len(uri), origin: flags & entryOrigin,
			})
			rest, ok = skipFacts(flags, facts)
		}
		if !ok {
			return fmt.Errorf("%w: tail of the host cannot be read", ErrCorrupt)
		}
	}
	if len(w.index) != int(r.next-r.spilled) {
		return fmt.Errorf("%w: the host's tail holds %d URLs, its row says %d", ErrCorrupt, len(w.index), r.next-r.spilled)
	}
	return nil
}

// found adds a discovered URL to its host unless it is known.
func (w *writer) found(r *hostRow, f *Found) error {
	if len(w.index) == 0 && len(w.tail) > 0 {
		if err := w.indexTail(r); err != nil {
			return err
		}
	}
	origin, ok := r.originIndex(f.URL.Origin())
	if !ok {
		w.result.Refused++
		return nil
	}
	uri := f.URL.RequestURI()
	known, err := w.known(r, origin, uri, f.Fingerprint)
	if known || err != nil {
		return err
	}
	if r.next == 1<<32-1 {
		w.result.Refused++
		return nil
	}
	e := Entry{
		Origin: origin, RequestURI: uri, Depth: f.Depth, Redirects: f.Redirects, Seed: f.Seed,
		Priority: f.Priority, ViaHost: f.ViaHost, ViaOrdinal: f.ViaOrdinal, FirstSeen: f.At,
	}
	start := len(w.tail)
	w.tail = appendEntry(w.tail, r.id, &e)
	_, text, _, _ := entryKey(w.tail[start:])
	w.index = append(w.index, tailRef{start: start, uri: cap(w.tail) - cap(text), length: len(text), origin: origin})
	r.next++
	r.counts[Queued]++
	r.origins[origin].queued++
	w.counters.URLs++
	w.counters.States[Queued]++
	w.result.Added++
	if n := len(w.index); n >= maxTail || n >= blockSize && len(w.tail) >= maxTailBytes {
		return w.spill(r)
	}
	return nil
}

// known reports whether the host already has the URL: in its tail, or behind a
// fingerprint whose text says so. A fingerprint alone never decides.
func (w *writer) known(r *hostRow, origin uint8, uri string, fingerprint uint64) (bool, error) {
	for i := range w.index {
		t := &w.index[i]
		if t.length == len(uri) && t.origin == origin && string(w.tail[t.uri:t.uri+t.length]) == uri {
			return true, nil
		}
	}
	if r.spilled == 0 {
		return false, nil
	}
	_, block, _, _ := seenBlock(w.seenCursor, r.id, fingerprint, w.key)
	w.hits = seenOrdinals(block, fingerprint, w.hits[:0])
	for _, ordinal := range w.hits {
		text, ok := nthEntry(w.url.Get(appendBlockKey(w.key[:0], r.id, ordinal)), int(ordinal%blockSize))
		if !ok {
			return false, fmt.Errorf("%w: URL %d of the host is missing", ErrCorrupt, ordinal)
		}
		if sameURL(text, origin, uri) {
			return true, nil
		}
	}
	return false, nil
}

// spill moves the whole blocks of the tail into the url and seen buckets.
func (w *writer) spill(r *hostRow) error {
	whole := len(w.index) / blockSize * blockSize
	w.items = w.items[:0]
	for i := range whole {
		t := w.index[i]
		o := r.origins[t.origin]
		w.items = append(w.items, seenItem{
			fingerprint: w.store.fingerprint(o.secure, o.port, w.tail[t.uri:t.uri+t.length]),
			ordinal:     r.spilled + uint32(i),
		})
	}
	for i := 0; i < whole; i += blockSize {
		end := len(w.tail)
		if i+blockSize < len(w.index) {
			end = w.index[i+blockSize].start
		}
		key := appendBlockKey(w.key[:0], r.id, r.spilled+uint32(i))
		if err := w.url.Put(key, w.arena.copy(w.tail[w.index[i].start:end])); err != nil {
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
	if len(w.tail) == 0 {
		return nil
	}
	return w.indexTail(r)
}
