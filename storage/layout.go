package storage

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// The buckets. FORMAT.md describes their keys and values.
var (
	bucketName          = []byte("name")
	bucketHost          = []byte("host")
	bucketURL           = []byte("url")
	bucketSeen          = []byte("seen")
	bucketState         = []byte("state")
	bucketDue           = []byte("due")
	bucketRecrawl       = []byte("renew")
	bucketRobots        = []byte("robots")
	bucketRobotsHistory = []byte("past")
	bucketScope         = []byte("scope")
	bucketTrap          = []byte("trap")
	bucketPayload       = []byte("payload")
	bucketMetadata      = []byte("metadata")
	bucketMark          = []byte("mark")
	bucketMeta          = []byte("meta")
)

func buckets() [][]byte {
	return [][]byte{
		bucketName, bucketHost, bucketURL, bucketSeen, bucketState, bucketDue, bucketRecrawl,
		bucketTrap, bucketPayload, bucketMetadata, bucketRobots, bucketRobotsHistory, bucketScope,
		bucketMark, bucketMeta,
	}
}

func appendHostKey(b []byte, host HostID) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(host))
}

// appendBlockKey appends the key of a row of url or state.
func appendBlockKey(b []byte, host HostID, ordinal uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHostKey(b, host), blockOf(ordinal))
}

// appendURLKey appends the key of a row of metadata.
func appendURLKey(b []byte, host HostID, ordinal uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHostKey(b, host), ordinal)
}

func appendSeenKey(b []byte, host HostID, fingerprint uint64) []byte {
	return binary.BigEndian.AppendUint64(appendHostKey(b, host), fingerprint)
}

// dueAtOnce is the due time of a queued URL that has a priority.
const dueAtOnce = 1

// appendDueKey appends a key that orders a queue's due URLs by falling priority, then by time.
func appendDueKey(b []byte, host HostID, origin uint8, priority int8, due, ordinal uint32) []byte {
	b = append(appendHostKey(b, host), origin, byte(127-int(priority)))
	b = binary.BigEndian.AppendUint32(b, due)
	return binary.BigEndian.AppendUint32(b, ordinal)
}

// appendRecrawlKey appends a key that orders a queue's recrawls by time.
func appendRecrawlKey(b []byte, host HostID, origin uint8, due, ordinal uint32) []byte {
	b = append(appendHostKey(b, host), origin)
	b = binary.BigEndian.AppendUint32(b, due)
	return binary.BigEndian.AppendUint32(b, ordinal)
}

// The sizes of the keys.
const (
	hostKeySize    = 4
	blockKeySize   = 4 + 4
	urlKeySize     = 4 + 4
	seenKeySize    = 4 + 8
	dueKeySize     = 4 + 1 + 1 + 4 + 4
	recrawlKeySize = 4 + 1 + 4 + 4
)

// hostOfKey returns the host at the start of a key, NoHost if the key is too short.
func hostOfKey(k []byte) HostID {
	if len(k) < 4 {
		return NoHost
	}
	return HostID(binary.BigEndian.Uint32(k))
}

// skipCounts skips a list of keys of the given size, each followed by its count.
func skipCounts(d *wire.Decoder, key int) {
	for range int(d.Byte()) {
		d.Bytes(key)
		d.Uvarint()
	}
}

func appendShort(b []byte, s string) []byte {
	return append(append(b, byte(len(s))), s...)
}

// Seconds returns a time as the rows have it: Unix seconds in 32 bits, 0 for the zero time.
func Seconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(min(max(t.Unix(), 1), 1<<32-1))
}

// secondsUp rounds up, for instants that must not come early.
func secondsUp(t time.Time) uint32 {
	s := Seconds(t)
	if s != 0 && t.Nanosecond() > 0 && s != 1<<32-1 {
		s++
	}
	return s
}

// FromSeconds is the inverse of Seconds.
func FromSeconds(s uint32) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0)
}

// damagedRow returns the error for a row without its checksum.
func damagedRow(bucket, k []byte) error {
	switch string(bucket) {
	case string(bucketName), string(bucketRobots), string(bucketRobotsHistory), string(bucketScope), string(bucketMark),
		string(bucketMeta):
		return fmt.Errorf("%w: row %q of bucket %s does not have its checksum", ErrCorrupt, k, bucket)
	}
	return fmt.Errorf("host %d: %w: a row of bucket %s does not have its checksum", hostOfKey(k), ErrCorrupt, bucket)
}
