package storage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

const keySize = 16

// Fingerprint returns the fingerprint of a URL: 64 bits that identify it among the URLs of its
// host. It is keyed with a secret of this store, so that nobody can prepare URLs that collide. A
// collision only costs time, since texts decide. Any goroutine may call it.
func (s *rows) Fingerprint(u weburl.URL) uint64 {
	return fingerprint(s, u.Scheme() == "https", u.Port(), u.RequestURI())
}

// usualURI is the length of the request URIs whose fingerprints take no memory but the stack's.
const usualURI = 256

func fingerprint[T string | []byte](s *rows, secure bool, port uint16, uri T) uint64 {
	var buf [keySize + 3 + usualURI]byte
	b := append(buf[:0], s.key[:]...)
	if secure {
		b = append(b, 's')
	} else {
		b = append(b, 'p')
	}
	b = binary.BigEndian.AppendUint16(b, port)
	sum := sha256.Sum256(append(b, uri...))
	fp := binary.BigEndian.Uint64(sum[:])
	if s.weaken != nil {
		fp = s.weaken(fp)
	}
	return fp
}

// The seen bucket has the keyed fingerprint and the ordinal of every URL that has left its host's
// row, sorted, in blocks. The name of a block is the first fingerprint that it may hold. The first
// block of a host is named 0.
const (
	seenItemSize = 12
	maxSeenItems = 96
)

type seenItem struct {
	fingerprint uint64
	ordinal     uint32
}

// seenBlock finds the block that covers a fingerprint. If more is set, next is the name of the block behind it.
func seenBlock(
	c *cursor, host HostID, fingerprint uint64, keyBuf []byte,
) (key, val []byte, next uint64, more bool) {
	var k []byte
	if fingerprint == 1<<64-1 {
		k, _ = c.Seek(appendHostKey(keyBuf[:0], host+1))
	} else {
		k, _ = c.Seek(appendSeenKey(keyBuf[:0], host, fingerprint+1))
	}
	if k != nil && hostOfKey(k) == host {
		next, more = binary.BigEndian.Uint64(k[4:]), true
	}
	if k == nil {
		key, val = c.Last()
	} else {
		key, val = c.Prev()
	}
	if key == nil || hostOfKey(key) != host {
		return nil, nil, next, more
	}
	return key, val, next, more
}

// seenOrdinals appends the ordinals that a block holds for a fingerprint.
func seenOrdinals(block []byte, fingerprint uint64, to []uint32) []uint32 {
	n := len(block) / seenItemSize
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		if binary.BigEndian.Uint64(block[mid*seenItemSize:]) < fingerprint {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < n && binary.BigEndian.Uint64(block[lo*seenItemSize:]) == fingerprint; lo++ {
		to = append(to, binary.BigEndian.Uint32(block[lo*seenItemSize+8:]))
	}
	return to
}

// addSeen merges items into the host's blocks and splits blocks that become too large. It sorts items in place.
func (w *hostWork) addSeen(host HostID, items []seenItem) error {
	sortSeen(items)
	for len(items) > 0 {
		key, block, next, more := seenBlock(w.seenCursor, host, items[0].fingerprint, w.key)
		first := uint64(0)
		if key != nil {
			first = binary.BigEndian.Uint64(key[4:])
		}
		n := len(items)
		if more {
			n, _ = slices.BinarySearchFunc(items, next, func(i seenItem, f uint64) int {
				return cmp.Compare(i.fingerprint, f)
			})
		}
		if err := w.putSeen(host, first, mergeSeen(w.merge[:0], block, items[:n])); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

func sortSeen(items []seenItem) {
	slices.SortFunc(items, func(a, b seenItem) int { return cmp.Compare(a.fingerprint, b.fingerprint) })
}

// mergeSeen merges sorted items into an encoded block.
func mergeSeen(to, block []byte, items []seenItem) []byte {
	for len(block) > 0 || len(items) > 0 {
		if len(items) == 0 || len(block) > 0 && binary.BigEndian.Uint64(block) <= items[0].fingerprint {
			to = append(to, block[:seenItemSize]...)
			block = block[seenItemSize:]
			continue
		}
		to = binary.BigEndian.AppendUint64(to, items[0].fingerprint)
		to = binary.BigEndian.AppendUint32(to, items[0].ordinal)
		items = items[1:]
	}
	return to
}

// putSeen writes merged items.
func (w *hostWork) putSeen(host HostID, first uint64, merged []byte) error {
	w.merge = merged
	return eachSeenBlock(first, merged, func(first uint64, block []byte) error {
		return w.seen.Put(appendSeenKey(w.key[:0], host, first), block)
	})
}

// eachSeenBlock divides merged items into one block or, if they are too many, into several of equal size,
// and calls put with the name of each. Equal fingerprints stay together.
func eachSeenBlock(first uint64, merged []byte, put func(first uint64, block []byte) error) error {
	for len(merged) > 0 {
		total := len(merged) / seenItemSize
		blocks := (total + maxSeenItems - 1) / maxSeenItems
		n := (total + blocks - 1) / blocks * seenItemSize
		for n < len(merged) && bytes.Equal(merged[n-seenItemSize:n-4], merged[n:n+8]) {
			n += seenItemSize
		}
		if err := put(first, merged[:n]); err != nil {
			return err
		}
		if merged = merged[n:]; len(merged) > 0 {
			first = binary.BigEndian.Uint64(merged)
		}
	}
	return nil
}
