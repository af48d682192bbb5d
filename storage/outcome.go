package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// Flags of an encoded outcome: which optional fields follow.
const (
	outcomeStatus = 1 << iota
	outcomeBytes
	outcomeDigest
	outcomeDue
	outcomeLine
	outcomeETag
	outcomeModified
	outcomeHistory
)

// outcomeMore is set with the state if a second byte of flags follows at the end.
const outcomeMore = 0x80

// Flags of the second byte.
const (
	outcomeSimhash = 1 << iota
	outcomeNote
	outcomeUsage
	outcomeStamp
)

// maxRecent is how many outcomes the host's row may hold.
const maxRecent = 16

// AppendOutcome appends an outcome as rows and logs have it. Texts of more than 255 bytes are left out.
func AppendOutcome(b []byte, o *Outcome) []byte {
	var flags byte
	has := func(flag byte, on bool) bool {
		if on {
			flags |= flag
		}
		return on
	}
	at := len(b)
	b = binary.BigEndian.AppendUint32(append(b, 0, byte(o.State), byte(o.Reason), o.Attempts), Seconds(o.At))
	if has(outcomeStatus, o.Status != 0) {
		b = binary.BigEndian.AppendUint16(b, o.Status)
	}
	if has(outcomeBytes, o.Bytes != 0) {
		b = binary.AppendUvarint(b, o.Bytes)
	}
	if has(outcomeDigest, o.Digest != 0) {
		b = binary.BigEndian.AppendUint64(b, o.Digest)
	}
	if has(outcomeDue, !o.Due.IsZero()) {
		b = binary.BigEndian.AppendUint32(b, secondsUp(o.Due))
	}
	if has(outcomeLine, o.Line != 0) {
		b = binary.AppendUvarint(b, uint64(o.Line))
	}
	if has(outcomeETag, o.ETag != "" && len(o.ETag) < 256) {
		b = appendShort(b, o.ETag)
	}
	if has(outcomeModified, o.Modified != "" && len(o.Modified) < 256) {
		b = appendModified(b, o.Modified)
	}
	if has(outcomeHistory, o.History != [8]byte{}) {
		b = append(b, o.History[:]...)
	}
	b[at], flags = flags, 0
	more := len(b)
	b = append(b, 0)
	if has(outcomeSimhash, o.Simhash != 0) {
		b = binary.BigEndian.AppendUint64(b, o.Simhash)
	}
	if has(outcomeNote, o.Note != "" && len(o.Note) < 256) {
		b = appendShort(b, o.Note)
	}
	if has(outcomeUsage, o.Usage != "" && len(o.Usage) < 256) {
		b = appendShort(b, o.Usage)
	}
	if has(outcomeStamp, o.Stamp != 0) {
		b = binary.BigEndian.AppendUint32(b, o.Stamp)
	}
	if flags == 0 {
		return b[:more]
	}
	b[at+1] |= outcomeMore
	b[more] = flags
	return b
}

// DecodeOutcome is the inverse of AppendOutcome. It also returns the bytes behind the outcome; ok
// says whether there is one.
func DecodeOutcome(b []byte) (o Outcome, rest []byte, ok bool) {
	d := wire.NewDecoder(b)
	flags := d.Byte()
	state := d.Byte()
	o = Outcome{State: State(state &^ outcomeMore)}
	o.Reason, o.Attempts, o.At = Reason(d.Byte()), d.Byte(), FromSeconds(d.Uint32())
	if flags&outcomeStatus != 0 {
		o.Status = d.Uint16()
	}
	if flags&outcomeBytes != 0 {
		o.Bytes = d.Uvarint()
	}
	if flags&outcomeDigest != 0 {
		o.Digest = d.Uint64()
	}
	if flags&outcomeDue != 0 {
		o.Due = FromSeconds(d.Uint32())
	}
	if flags&outcomeLine != 0 {
		o.Line = uint32(d.Uvarint())
	}
	if flags&outcomeETag != 0 {
		o.ETag = string(d.Short())
	}
	if flags&outcomeModified != 0 {
		o.Modified = decodeModified(&d)
	}
	if flags&outcomeHistory != 0 {
		copy(o.History[:], d.Bytes(8))
	}
	if state&outcomeMore != 0 {
		more := d.Byte()
		d.Require(0 < more && more < outcomeStamp<<1)
		if more&outcomeSimhash != 0 {
			o.Simhash = d.Uint64()
		}
		if more&outcomeNote != 0 {
			o.Note = string(d.Short())
		}
		if more&outcomeUsage != 0 {
			o.Usage = string(d.Short())
		}
		if more&outcomeStamp != 0 {
			o.Stamp = d.Uint32()
		}
	}
	return o, d.Rest(), d.OK() && o.State < numStates
}

// httpDate is the form of nearly every Last-Modified (RFC 9110 section 5.6.7).
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// appendModified encodes a date in the usual form as a zero and Unix seconds, anything else as a short string that is
// not empty.
func appendModified(b []byte, s string) []byte {
	t, err := time.Parse(httpDate, s)
	if unix := t.Unix(); err == nil && unix >= 0 && unix < 1<<32 && t.Format(httpDate) == s {
		return binary.BigEndian.AppendUint32(append(b, 0), uint32(unix))
	}
	return appendShort(b, s)
}

func decodeModified(d *wire.Decoder) string {
	if n := d.Byte(); n != 0 {
		return string(d.Bytes(int(n)))
	}
	return time.Unix(int64(d.Uint32()), 0).UTC().Format(httpDate)
}

// slots are the outcomes of one block of sixteen ordinals as the state bucket holds them: for each URL with an outcome,
// a byte with its index in the block, the length of the outcome in a uvarint, and the outcome; ordered by index.
type slots struct {
	index []uint8
	body  [][]byte
}

func decodeSlots(b []byte) (slots, bool) {
	var s slots
	d := wire.NewDecoder(b)
	last := -1
	for d.Len() > 0 {
		index := d.Byte()
		body := d.Long()
		if !d.OK() || int(index) <= last || index >= blockSize {
			return slots{}, false
		}
		last = int(index)
		s.index, s.body = append(s.index, index), append(s.body, body)
	}
	return s, d.OK()
}

func (s *slots) set(index uint8, body []byte) {
	i, found := slices.BinarySearch(s.index, index)
	if found {
		s.body[i] = body
		return
	}
	s.index = slices.Insert(s.index, i, index)
	s.body = slices.Insert(s.body, i, body)
}

func (s *slots) append(b []byte) []byte {
	for i, index := range s.index {
		b = append(b, index)
		b = binary.AppendUvarint(b, uint64(len(s.body[i])))
		b = append(b, s.body[i]...)
	}
	return b
}

// findSlot returns the encoded outcome at an index of a block.
func findSlot(b []byte, index uint8) ([]byte, bool) {
	d := wire.NewDecoder(b)
	for d.Len() > 0 {
		p := d.Byte()
		body := d.Long()
		if !d.OK() || p > index {
			return nil, false
		}
		if p == index {
			return body, true
		}
	}
	return nil, false
}

// done records the outcome of a URL and updates the counters and due rows.
func (w *writer) done(r *hostRow, d *Done) error {
	if d.Ordinal >= r.next || int(d.Origin) >= len(r.origins) {
		return fmt.Errorf("outcome for URL %d of origin %d, but the host has %d URLs of %d origins",
			d.Ordinal, d.Origin, r.next, len(r.origins))
	}
	if s := d.Outcome.State; s == Queued || s >= numStates {
		return fmt.Errorf("outcome for URL %d: %s is not an outcome", d.Ordinal, s)
	}
	if d.Ordinal < r.first {
		return nil // it was deleted while its request was in flight
	}
	before, err := w.outcome(r, d.Ordinal)
	if err == nil && !d.When.Has(before.State) {
		w.result.Unmet = append(w.result.Unmet, Position{r.id, d.Ordinal})
		return nil
	}
	if err != nil {
		return err
	}
	origin := &r.origins[d.Origin]
	from, recrawlFrom := before.plan()
	if before.State == Queued && r.prioritized(d.Ordinal, d.Priority) {
		from = dueAtOnce
	} else if before.State == Queued {
		if origin.Queued == 0 {
			return fmt.Errorf("outcome for URL %d of origin %d, which has no queued URL", d.Ordinal, d.Origin)
		}
		origin.Queued--
	}
	w.count(r, d.Priority, before.State, -1)
	w.count(r, d.Priority, d.Outcome.State, 1)
	to, recrawlTo := d.Outcome.plan()
	if err := w.moveDue(r, d, from, to); err != nil {
		return err
	}
	if err := w.moveRecrawl(r, d, recrawlFrom, recrawlTo); err != nil {
		return err
	}
	if d.Outcome.counted() {
		r.errors = r.errors.add(d.Outcome.Reason)
	}
	w.content(r, d, before.State)
	return w.putOutcome(r, d)
}

// count adds 1 or -1 to the URLs in a state. Imports of older versions may have left requisites that none counted.
func (w *hostWork) count(r *hostRow, priority int8, s State, n int) {
	r.counts[s] += uint32(n)
	w.counters.States[s] += uint64(n)
	if priority == PriorityRequisite && (n > 0 || r.requisites[s] > 0) {
		r.requisites[s] += uint32(n)
		w.counters.Requisites[s] += uint64(n)
	}
}

// outcome returns the last outcome of an ordinal, the zero Outcome if there is none.
func (w *hostWork) outcome(r *hostRow, ordinal uint32) (Outcome, error) {
	body, ok := r.recentOutcome(ordinal)
	if !ok && ordinal < r.stateTop {
		body, ok = findSlot(w.stateRows.Get(appendBlockKey(w.key[:0], r.id, ordinal)), uint8(ordinal%blockSize))
	}
	if !ok {
		return Outcome{}, nil
	}
	o, _, ok := DecodeOutcome(body)
	if !ok {
		return Outcome{}, fmt.Errorf("%w: outcome of URL %d cannot be read", ErrCorrupt, ordinal)
	}
	return o, nil
}

// moveDue moves the URL's due row from one time to another; 0 is none.
func (w *hostWork) moveDue(r *hostRow, d *Done, from, to uint32) error {
	if from == to {
		return nil
	}
	origin := &r.origins[d.Origin]
	if from != 0 {
		key := appendDueKey(w.key[:0], r.id, d.Origin, d.Priority, from, d.Ordinal)
		if k, _ := w.dueCursor.Seek(key); !bytes.Equal(k, key) {
			return fmt.Errorf("outcome for URL %d of origin %d and priority %d, which has no due row",
				d.Ordinal, d.Origin, d.Priority)
		}
		if err := w.due.Delete(key); err != nil {
			return err
		}
		origin.Due--
	}
	if to != 0 {
		if err := w.due.Put(appendDueKey(w.key[:0], r.id, d.Origin, d.Priority, to, d.Ordinal), nil); err != nil {
			return err
		}
		origin.Due++
	}
	origin.NextDue = w.firstDue(r.id, d.Origin)
	return nil
}

// firstDue returns the earliest due time of a queue. It reads the first row of each priority.
func (w *hostWork) firstDue(host HostID, origin uint8) uint32 {
	var first uint32
	c := w.dueCursor
	for class := 0; class < 256; {
		k, _ := c.Seek(append(appendHostKey(w.key[:0], host), origin, byte(class)))
		if len(k) != dueKeySize || hostOfKey(k) != host || k[4] != origin {
			break
		}
		if due := binary.BigEndian.Uint32(k[6:]); first == 0 || due < first {
			first = due
		}
		class = int(k[5]) + 1
	}
	return first
}

// putOutcome puts the outcome into the row. When the row is full, all its outcomes move to the state bucket.
func (w *hostWork) putOutcome(r *hostRow, d *Done) error {
	at := len(w.bodies)
	w.bodies = AppendOutcome(w.bodies, &d.Outcome)
	body := w.bodies[at:len(w.bodies):len(w.bodies)]
	if i := slices.IndexFunc(r.recent, func(o recentOutcome) bool { return o.ordinal == d.Ordinal }); i >= 0 {
		r.recent[i].body = body
		return nil
	}
	r.recent = append(r.recent, recentOutcome{d.Ordinal, body})
	if len(r.recent) <= r.room() {
		return nil
	}
	slices.SortFunc(r.recent, func(a, b recentOutcome) int { return int(int64(a.ordinal) - int64(b.ordinal)) })
	for i := 0; i < len(r.recent); {
		j := i + 1
		for j < len(r.recent) && blockOf(r.recent[j].ordinal) == blockOf(r.recent[i].ordinal) {
			j++
		}
		if err := w.putStates(r, r.recent[i:j]); err != nil {
			return err
		}
		i = j
	}
	r.recent = r.recent[:0]
	return nil
}

// room returns how many outcomes the row may hold. The first time it is fewer for most hosts.
// Otherwise the rows of hosts that are fetched in step would overflow in the same commit each time.
func (r *hostRow) room() int {
	if r.stateTop == 0 {
		return maxRecent/2 + int(r.id)%(maxRecent/2+1)
	}
	return maxRecent
}

// putStates merges outcomes of one block into the block's row of the state bucket.
func (w *hostWork) putStates(r *hostRow, outcomes []recentOutcome) error {
	block := blockOf(outcomes[0].ordinal)
	key := appendBlockKey(w.key[:0], r.id, block)
	var s slots
	if block < r.stateTop {
		var ok bool
		if s, ok = decodeSlots(w.stateRows.Get(key)); !ok {
			return fmt.Errorf("%w: outcomes from URL %d on cannot be read", ErrCorrupt, block)
		}
	}
	for _, o := range outcomes {
		s.set(uint8(o.ordinal-block), o.body)
	}
	w.scratch = s.append(w.scratch[:0])
	r.stateTop = max(r.stateTop, block+blockSize)
	return w.state.Put(key, w.scratch)
}
