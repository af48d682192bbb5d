package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// done records what became of a URL and keeps the counters and due rows true.
func (w *writer) done(r *hostRow, d *Done) error {
	if d.Ordinal >= r.next || int(d.Origin) >= len(r.origins) {
		return fmt.Errorf("outcome for URL %d of origin %d, but the host has %d URLs of %d origins", d.Ordinal, d.Origin, r.next, len(r.origins))
	}
	if s := d.Outcome.State; s == Queued || s >= numStates {
		return fmt.Errorf("outcome for URL %d: %s is not what becomes of a URL", d.Ordinal, s)
	}
	before, err := w.outcome(r, d.Ordinal)
	if err != nil {
		return err
	}
	if !d.When.Has(before.State) {
		return nil
	}
	origin := &r.origins[d.Origin]
	from, renewFrom := before.plan()
	if before.State == Queued && r.prioritized(d.Ordinal, d.Priority) {
		from = dueAtOnce
	} else if before.State == Queued {
		if origin.queued == 0 {
			return fmt.Errorf("outcome for URL %d of origin %d, which has no queued URL", d.Ordinal, d.Origin)
		}
		origin.queued--
	}
	r.counts[before.State]--
	r.counts[d.Outcome.State]++
	w.counters.States[before.State]--
	w.counters.States[d.Outcome.State]++
	to, renewTo := d.Outcome.plan()
	if err := w.reschedule(r, d, from, to); err != nil {
		return err
	}
	if err := w.renewal(r, d, renewFrom, renewTo); err != nil {
		return err
	}
	if d.Outcome.counted() {
		r.errors = r.errors.add(d.Outcome.Reason)
	}
	w.content(r, d, before.State)
	return w.remember(r, d)
}

// outcome is the last outcome of an ordinal; the zero Outcome if there is none.
func (w *writer) outcome(r *hostRow, ordinal uint32) (Outcome, error) {
	body, ok := r.recentOutcome(ordinal)
	if !ok && ordinal < r.stateTop {
		body, ok = findSlot(w.stateRows.get(appendBlockKey(w.key[:0], r.id, ordinal)), uint8(ordinal%blockSize))
	}
	if !ok {
		return Outcome{}, nil
	}
	o, _, ok := decodeOutcome(body)
	if !ok {
		return Outcome{}, fmt.Errorf("%w: outcome of URL %d cannot be read", ErrCorrupt, ordinal)
	}
	return o, nil
}

// reschedule moves the URL's due row from one instant to another; 0 is none.
func (w *writer) reschedule(r *hostRow, d *Done, from, to uint32) error {
	if from == to {
		return nil
	}
	origin := &r.origins[d.Origin]
	if from != 0 {
		key := appendDueKey(w.key[:0], r.id, d.Origin, d.Priority, from, d.Ordinal)
		if k, _ := w.dueCursor.Seek(key); !bytes.Equal(k, key) {
			return fmt.Errorf("outcome for URL %d of origin %d and priority %d, which has no due row", d.Ordinal, d.Origin, d.Priority)
		}
		if err := w.due.Delete(key); err != nil {
			return err
		}
		origin.due--
	}
	if to != 0 {
		if err := w.due.Put(appendDueKey(w.key[:0], r.id, d.Origin, d.Priority, to, d.Ordinal), nil); err != nil {
			return err
		}
		origin.due++
	}
	origin.nextDue = w.firstDue(r.id, d.Origin)
	return nil
}

// firstDue finds the earliest due time of a queue: the first row of each
// priority it has.
func (w *writer) firstDue(host HostID, origin uint8) uint32 {
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

// remember puts the outcome into the row and, when the row has no room left,
// moves all that it holds to the state bucket.
func (w *writer) remember(r *hostRow, d *Done) error {
	at := len(w.bodies)
	w.bodies = appendOutcome(w.bodies, &d.Outcome)
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

// room is how many outcomes the row holds. The first time it is fewer for most hosts: else the rows of hosts that are asked in step
// would overflow in the same commit, then and ever after.
func (r *hostRow) room() int {
	if r.stateTop == 0 {
		return maxRecent/2 + int(r.id)%(maxRecent/2+1)
	}
	return maxRecent
}

// putStates merges outcomes of one block into its row of the state bucket.
func (w *writer) putStates(r *hostRow, outcomes []recentOutcome) error {
	block := blockOf(outcomes[0].ordinal)
	key := appendBlockKey(w.key[:0], r.id, block)
	var s slots
	if block < r.stateTop {
		var ok bool
		if s, ok = decodeSlots(w.stateRows.get(key)); !ok {
			return fmt.Errorf("%w: outcomes from URL %d on cannot be read", ErrCorrupt, block)
		}
	}
	for _, o := range outcomes {
		s.set(uint8(o.ordinal-block), o.body)
	}
	w.scratch = s.append(w.scratch[:0])
	r.stateTop = max(r.stateTop, block+blockSize)
	return w.state.Put(key, w.arena.copy(w.scratch))
}
