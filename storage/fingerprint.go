package storage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
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

// seenBlock is the part of a host's URLs in the seen bucket whose fingerprints are from first to before next.
type seenBlock struct {
	items       []byte
	first, next uint64
	last        bool // there is no next
}

// covers reports whether a fingerprint would be in the block. That of the zero value covers none.
func (s *seenBlock) covers(fingerprint uint64) bool {
	return s.first <= fingerprint && (s.last || fingerprint < s.next)
}

// readSeen reads the block of a host that covers a fingerprint. A host without any has an empty one that covers all.
func readSeen(c *cursor, host HostID, fingerprint uint64, keyBuf []byte) (s seenBlock) {
	behind := appendHostKey(keyBuf[:0], host+1)
	if fingerprint < math.MaxUint64 {
		behind = appendSeenKey(keyBuf[:0], host, fingerprint+1)
	}
	key, items, next := c.Before(behind)
	if s.last = next == nil || hostOfKey(next) != host; !s.last {
		s.next = binary.BigEndian.Uint64(next[4:])
	}
	if key != nil && hostOfKey(key) == host {
		s.items, s.first = items, binary.BigEndian.Uint64(key[4:])
	}
	return s
}

// seenBlock returns the block of the host at hand that covers a fingerprint. That which was read last is kept: the
// URLs of a host that a commit looks up are often in the same one.
func (w *hostWork) seenBlock(host HostID, fingerprint uint64) *seenBlock {
	if !w.lastSeen.covers(fingerprint) {
		w.lastSeen = readSeen(w.seenCursor, host, fingerprint, w.key)
	}
	return &w.lastSeen
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
		block := w.seenBlock(host, items[0].fingerprint)
		n := len(items)
		if !block.last {
			n, _ = slices.BinarySearchFunc(items, block.next, func(i seenItem, f uint64) int {
				return cmp.Compare(i.fingerprint, f)
			})
		}
		if err := w.putSeen(host, block.first, mergeSeen(w.merge[:0], block.items, items[:n])); err != nil {
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
	w.merge, w.lastSeen = merged, seenBlock{}
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
