package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// plantStore returns a store with one host that has rows in every bucket.
func plantStore(t *testing.T) *Store {
	s := mustOpen(t, t.TempDir(), Options{NoSync: true})
	t.Cleanup(func() { mustClose(t, s) })
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("host.example", 0, 200)...)})
	b := Batch{Found: found(t, s, "https://host.example/first")}
	b.Found[0].Priority = 2
	for n := range uint32(20) {
		b.Done = append(b.Done, Done{Host: 1, Ordinal: n, Outcome: Outcome{State: Fetched, At: someTime}})
	}
	b.Done[4].Outcome.Due = someTime.Add(time.Hour)
	b.Refused = []Refused{{Host: "host.example", Reason: 4, URL: parse(t, "https://host.example/9999")}}
	b.Policies = []Policy{{parse(t, "https://host.example/").Origin(), []byte("record")}}
	mustCommit(t, s, &b)
	checkClean(t, s)
	return s
}

// editExtras sets the flag of a part of a row that does not exist.
func editExtras(row []byte) []byte {
	var r hostRow
	r.decode(1, row)
	row[len(row)-len(r.tail)-len(r.appendExtras(nil))] |= 0x80
	return row
}

// editRow changes the row of host 1.
func editRow(edit func(r *hostRow)) func(*txn) error {
	return func(tx *txn) error {
		var r hostRow
		if err := getRow(tx, 1, &r); err != nil {
			return err
		}
		edit(&r)
		return tx.Bucket(bucketHost).Put(appendHostKey(nil, 1), r.append(nil))
	}
}

// editValue changes the first row of a bucket.
func editValue(bucket []byte, edit func(v []byte) []byte) func(*txn) error {
	return func(tx *txn) error {
		k, v := tx.Bucket(bucket).Cursor().First()
		return tx.Bucket(bucket).Put(k, edit(append([]byte(nil), v...)))
	}
}

func deleteFirst(bucket []byte) func(*txn) error {
	return func(tx *txn) error {
		k, _ := tx.Bucket(bucket).Cursor().First()
		return tx.Bucket(bucket).Delete(k)
	}
}

func put(bucket, key, value []byte) func(*txn) error {
	return func(tx *txn) error { return tx.Bucket(bucket).Put(key, value) }
}

func TestCheckFinds(t *testing.T) {
	tests := []struct {
		name  string
		plant func(*txn) error
		want  string
	}{
		{"row of a host cut", editValue(bucketHost, func(v []byte) []byte { return v[:30] }), "row cannot be read"},
		{"row of a host of another version", editValue(bucketHost, func(v []byte) []byte { v[0] = 9; return v }),
			"row cannot be read"},
		{"row of a host gone", deleteFirst(bucketHost), "bucket name has 1 rows, 0 belong"},
		{"a host id left out", put(bucketHost, appendHostKey(nil, 3),
			(&hostRow{name: []byte("c.example")}).append(nil)), "host 3 has row number 2"},
		{"name gone", deleteFirst(bucketName), "bucket name has another host or none for host.example"},
		{"name of another", editValue(bucketName, func([]byte) []byte { return appendHostKey(nil, 7) }),
			"bucket name has another host or none for host.example"},
		{"a name too many", put(bucketName, []byte("example.other"), appendHostKey(nil, 1)), "bucket name has 2 rows"},
		{"tail cut", editRow(func(r *hostRow) { r.tail = r.tail[:len(r.tail)-1] }), "tail holds"},
		{"next ordinal too high", editRow(func(r *hostRow) { r.next++ }), "tail holds"},
		{"spilled is no block", editRow(func(r *hostRow) { r.spilled++ }), "in blocks"},
		{"count wrong", editRow(func(r *hostRow) { r.counts[Fetched]++ }), "a full count gives [181 20"},
		{"queued wrong", editRow(func(r *hostRow) { r.origins[0].Queued-- }), "a full count gives {Queued:180"},
		{"earliest due wrong", editRow(func(r *hostRow) { r.origins[0].NextDue++ }), "NextDue"},
		{"cursor too far", editRow(func(r *hostRow) { r.origins[0].cursor = 21 }),
			"URL 20 is queued but behind the cursor"},
		{"origin gone", editRow(func(r *hostRow) { r.origins = nil }), "which is unknown"},
		{"recent outcome garbage", editRow(func(r *hostRow) { r.recent[0].body = []byte{1} }), "outcome of URL"},
		{"recent outcome twice", editRow(func(r *hostRow) { r.stateTop = 0 }), "a full count gives"},
		{"block of URLs gone", deleteFirst(bucketURL), "URL 0 cannot be read"},
		{"block of URLs edited", editValue(bucketURL, func(v []byte) []byte { v[4]++; return v }),
			"does not have the fingerprint of its text"},
		{"block of URLs of nobody", put(bucketURL, appendBlockKey(nil, 9, 0), []byte{1}), "bucket url has"},
		{"block of fingerprints gone", deleteFirst(bucketSeen), "fingerprints for 192 URLs"},
		{"one fingerprint gone", editValue(bucketSeen, func(v []byte) []byte { return v[seenItemSize:] }),
			"191 fingerprints for 192 URLs"},
		{"fingerprint edited", editValue(bucketSeen, func(v []byte) []byte { v[7]++; return v }),
			"does not have the fingerprint of its text"},
		{"fingerprint of another URL", editValue(bucketSeen, func(v []byte) []byte { v[11] ^= 1; return v }),
			"does not have the fingerprint of its text"},
		{"fingerprint of nothing", editValue(bucketSeen, func(v []byte) []byte { v[8] = 9; return v }),
			"which is not in a block"},
		{"fingerprints out of order",
			editValue(bucketSeen, func(v []byte) []byte { return append(v[seenItemSize:], v[:seenItemSize]...) }),
			"out of order"},
		{"fingerprints cut", editValue(bucketSeen, func(v []byte) []byte { return v[:5] }), "block of 5 bytes"},
		{"a URL twice", twice, "is stored twice"},
		{"outcomes gone", deleteFirst(bucketState), "a full count gives"},
		{"outcomes garbage", editValue(bucketState, func(v []byte) []byte { v[1] = 0xff; return v }),
			"outcomes cannot be read"},
		{"outcomes of URLs that are not there", put(bucketState, appendBlockKey(nil, 1, 1<<20), []byte{0, 1, 1}),
			"outcomes of URLs 1048576"},
		{"due row gone", deleteFirst(bucketDue), "is due but has no due row"},
		{"recrawl row gone", deleteFirst(bucketRecrawl),
			"is planned for a recrawl but has no row in bucket " + string(bucketRecrawl)},
		{"recrawl row without a URL", put(bucketRecrawl, appendRecrawlKey(nil, 1, 0, 5, 5), nil),
			"bucket " + string(bucketRecrawl) + " has 2 rows, 1 belong"},
		{"earliest recrawl wrong", editRow(func(r *hostRow) { r.origins[0].NextRecrawl++ }), "NextRecrawl"},
		{"due row without a URL", put(bucketDue, appendDueKey(nil, 1, 0, 0, 5, 5), nil),
			"bucket due has 2 rows, 1 belong"},
		{"due row of a priority gone", func(tx *txn) error {
			return tx.Bucket(bucketDue).Delete(appendDueKey(nil, 1, 0, 2, dueAtOnce, 200))
		}, "URL 200 is due but has no due row"},
		{"plain too high", editRow(func(r *hostRow) { r.plain = r.next }), "a full count gives {Queued:181"},
		{"queries twice", editRow(func(r *hostRow) { r.queries = tally{{5, 1}, {5, 1}} }), "row cannot be read"},
		{"unknown extras", editValue(bucketHost, func(v []byte) []byte { v[0] = 2; return editExtras(v) }),
			"row cannot be read"},
		{"traps garbage", editValue(bucketTrap, func(v []byte) []byte { return v[:2] }), "traps cannot be read"},
		{"traps of nobody", put(bucketTrap, appendHostKey(nil, 9), []byte{1, 1, 0}),
			"bucket trap has 2 rows, 1 belong"},
		{"payload garbage", put(bucketPayload, appendPayloadKey(nil, 1, 5), []byte{1}),
			"payload 0000000000000005 cannot be read"},
		{"payload of no URL", put(bucketPayload, appendPayloadKey(nil, 1, 5),
			appendPayload(nil, &Payload{Ordinal: 1 << 30})), "names no URL of the host"},
		{"payload of nobody", put(bucketPayload, appendPayloadKey(nil, 9, 5), appendPayload(nil, &Payload{})),
			"bucket payload has 1 rows, 0 belong"},
		{"payload of no URL in the row",
			editRow(func(r *hostRow) { r.payloads = recentItems(&Payload{Digest: 5, Ordinal: r.next}) }),
			"payload 0000000000000005 cannot be read or names no URL"},
		{"payloads out of order", editRow(func(r *hostRow) {
			r.payloads = recentItems(&Payload{Digest: 5}, &Payload{Digest: 4})
		}), "row cannot be read"},
		{"payload twice", editRow(func(r *hostRow) {
			r.payloads = recentItems(&Payload{Digest: 5}, &Payload{Digest: 5})
		}), "row cannot be read"},
		{"too many payloads", editRow(func(r *hostRow) {
			for n := range uint64(maxRecentPayloads + 1) {
				r.payloads = append(r.payloads, recentItems(&Payload{Digest: n})...)
			}
		}), "row cannot be read"},
		{"counter wrong", editValue(bucketMeta, func(v []byte) []byte { v[15]++; return v }), "counters are"},
		{"counters cut", editValue(bucketMeta, func(v []byte) []byte { return v[:9] }), "counters cannot be read"},
		{"policy gone", deleteFirst(bucketRobots), "counters are"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := plantStore(t)
			must.Do(t, s.db.Update(test.plant))
			assert.Contains(t, strings.Join(findings(t, s), "\n"), test.want, "check finds")
		})
	}
}

// twice gives the newest URL, in the row, the text of one that is in a block.
func twice(tx *txn) error {
	return editRow(func(r *hostRow) {
		e, _, _ := decodeEntry(tx.Bucket(bucketURL).Get(appendBlockKey(nil, 1, 0)), 1, 0)
		for range r.next - r.spilled - 1 {
			e.RequestURI += "x"
		}
		tail := []byte{}
		for n := r.spilled; n < r.next; n++ {
			tail = appendEntry(tail, 1, &e)
			e.RequestURI = e.RequestURI[:max(len(e.RequestURI)-1, 1)]
		}
		r.tail = tail
	})(tx)
}

// TestCheckDamagedPage breaks a page under an open store: an error, no panic, and another Open names
// the page.
func TestCheckDamagedPage(t *testing.T) {
	s := plantStore(t)
	var page int
	must.Do(t, s.db.View(func(tx *txn) error { page = int(tx.Bucket(bucketURL).Bolt.Root()); return nil }))
	dir := t.TempDir()
	writeStore(t, dir, readFile(t, s.Path()))
	damaged := mustOpen(t, dir, Options{})
	writeAt(t, damaged.Path(), int64(page*s.db.PageSize()+8), binary.LittleEndian.AppendUint16(nil, 0x7777))
	assert.Is(t, damaged.Check(context.Background(), func(Finding) {}), ErrCorrupt,
		"check of a file with a broken page")
	assert.Fails(damaged.URL(1, 0))(t, ErrCorrupt, "a URL in a broken page")
	mustClose(t, damaged)
	_, err := Open(dir, Options{})
	assert.True(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), fmt.Sprint("page ", page)),
		"open of a file with a broken page: %v", err)
}

// writeAt writes into a file that may be open.
func writeAt(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	must.Do(t, errors.Join(err, f.Close()))
}

func TestCheckCancelled(t *testing.T) {
	s := plantStore(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.Is(t, s.Check(ctx, func(Finding) {}), context.Canceled, "cancelled check")
}
