//go:build !core

package storage

import (
	"encoding/binary"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// hostRow returns what is known of a host that is not whole: its row, or what its other rows say of it. known is false
// if its row is lost, or that of an earlier commit. Origins that nothing is left of have no port.
func (s *salvage) hostRow(tx *txn, id HostID, r *hostRow) (known bool) {
	if r.decode(id, tx.Bucket(bucketHost).Get(appendHostKey(nil, id))) && r.first <= r.next {
		return !s.isOld(tx, r)
	}
	*r = hostRow{id: id, name: []byte(s.damaged[id])}
	first, last := s.blocks(tx, id)
	if len(r.name) == 0 || last == 0 {
		return false
	}
	r.first, r.next, r.spilled, r.stateTop = first, last, last, last
	r.origins = s.originsOf(tx, r)
	return false
}

// isOld reports whether the row of a host may be that of an earlier commit. Its URLs end with the last block then.
func (s *salvage) isOld(tx *txn, r *hostRow) bool {
	if _, end := s.blocks(tx, r.id); s.old[r.id] && end >= r.next {
		r.next, r.spilled, r.stateTop, r.tail = end, end, end, nil
	}
	return s.old[r.id]
}

// blocks returns the ordinals that the blocks of a host go from and to; 0, 0: there is none.
func (s *salvage) blocks(tx *txn, id HostID) (first, end uint32) {
	c := tx.Bucket(bucketURL).Cursor()
	begun := false
	for k, _ := c.Seek(appendHostKey(nil, id)); len(k) == blockKeySize && hostOfKey(k) == id; k, _ = c.Next() {
		block := binary.BigEndian.Uint32(k[hostKeySize:])
		if !begun {
			first, begun = block, true
		}
		end = block + blockSize
	}
	return first, end
}

// originsOf finds the origins of a host whose row is lost: of the likely ones, those that make the fingerprints of its
// URLs.
func (s *salvage) originsOf(tx *txn, r *hostRow) []originRow {
	prints := make(map[uint64]bool)
	c := tx.Bucket(bucketSeen).Cursor()
	for k, v := c.Seek(appendHostKey(nil, r.id)); len(k) == seenKeySize && hostOfKey(k) == r.id; k, v = c.Next() {
		for ; len(v) >= seenItemSize; v = v[seenItemSize:] {
			prints[binary.BigEndian.Uint64(v)] = true
		}
	}
	likely := []originRow{{secure: true, port: 443}, {port: 80}}
	_ = tx.Bucket(bucketRobots).Each(func(k, _ []byte) error {
		if o, err := weburl.ParseOrigin(string(k)); err == nil && o.Host == string(r.name) {
			likely = append(likely, originRow{secure: o.Scheme == "https", port: o.Port})
		}
		return nil
	})
	own, found := &rows{key: s.key}, []originRow(nil)
	rd := reader{tx: tx, row: *r}
	for n := r.first; n < r.next; n++ {
		e, err := rd.entry(n)
		if err != nil || int(e.Origin) < len(found) && found[e.Origin].port != 0 {
			continue
		}
		for len(found) <= int(e.Origin) {
			found = append(found, originRow{})
		}
		if i := slices.IndexFunc(likely, func(o originRow) bool {
			return prints[fingerprint(own, o.secure, o.port, e.identity())]
		}); i >= 0 {
			found[e.Origin] = likely[i]
		}
	}
	return found
}

// withPorts returns the origins that are known, and the index among them of each.
func withPorts(all []originRow) (known []originRow, index []uint8) {
	for _, o := range all {
		index = append(index, uint8(len(known)))
		if o.port != 0 {
			known = append(known, originRow{secure: o.secure, port: o.port})
		}
	}
	return known, index
}

// moveMarks commits the marks that name ordinals which have moved.
func (s *salvage) moveMarks(to *Store) error {
	if s.o.Moved == nil {
		return nil
	}
	all, err := to.Marks("")
	if err != nil {
		return err
	}
	changed := make(map[string][]byte)
	for name, value := range all {
		moved := s.o.Moved(name, value, func(id HostID, ordinal uint32) uint32 {
			kept, damaged := s.kept[id]
			if !damaged {
				return ordinal
			}
			n, _ := slices.BinarySearch(kept, ordinal)
			return uint32(n)
		})
		if string(moved) != string(value) {
			changed[name] = moved
		}
	}
	if len(changed) == 0 {
		return nil
	}
	_, err = to.Commit(&Batch{Marks: changed})
	return err
}
