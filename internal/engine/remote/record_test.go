package remote

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage/starts"
)

// TestGoldenLeaseMark: the value of the mark of a lease is what storage/FORMAT.md says, byte by byte.
func TestGoldenLeaseMark(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	full := Record{
		ID: "ABC", Fetcher: "f-1", Key: "k", URL: "http://a.test/?q=1&r", Address: "192.0.2.1",
		Given: at, Deadline: at.Add(time.Minute), Delay: 1500 * time.Millisecond, Line: 3, Version: "v", Offset: 4711,
		Again: true,
	}
	for want, l := range map[string]Record{
		`{"id":"ABC","fetcher":"f-1","key":"k","url":"http://a.test/?q=1\u0026r","address":"192.0.2.1",` +
			`"given":"2026-03-04T05:06:07.000000008Z","deadline":"2026-03-04T05:07:07.000000008Z","delay":1500000000,` +
			`"line":3,"version":"v","offset":4711,"again":true}`: full,
		`{"id":"A","fetcher":"f","url":"http://a.test/","given":"2026-03-04T05:06:07.000000008Z",` +
			`"deadline":"2026-03-04T05:06:07.000000008Z","delay":0,"offset":0}`: {
			ID: "A", Fetcher: "f", URL: "http://a.test/", Given: at, Deadline: at,
		},
	} {
		assert.Equal(t, string(l.Encode()), want, "the mark")
	}
}

// TestGoldenLeaseNote: the notes of leases in the start ledger are what storage/FORMAT.md says, byte by byte, and
// those of earlier versions can be read.
func TestGoldenLeaseNote(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 123_456_789)
	want := Record{
		ID: "ABC", Fetcher: "f-1", Key: "a key/, 1", URL: "http://a.test/,x", Given: at, Deadline: at.Add(time.Minute),
		Delay: 1500 * time.Microsecond, Line: 3, Version: "v", Offset: 7, Address: "192.0.2.1",
	}
	const note = "lease,3,v,ABC/f-1/1800000060123456789/1800000000123456789/1500000/a+key%2F%2C+1,http://a.test/,x"
	assert.Equal(t, want.Note(NoteLease), note, "the note")
	start := starts.Start{Note: note, Address: want.Address, At: at.Truncate(time.Millisecond)}
	start.Delay = 2 * time.Millisecond
	kind, got := Parse(start, 7)
	assert.True(t, kind == NoteLease && got == want, "%s: %+v, want %+v", kind, got, want)
	start.Note = "again,3,v,ABC/f-1/1800000060123,http://a.test/,x"
	want.Key, want.Given, want.Delay, want.Again = "", start.At, start.Delay, true
	want.Deadline = time.UnixMilli(1_800_000_060_123)
	if kind, got := Parse(start, 7); kind != NoteAgain || got != want {
		t.Errorf("of an earlier version, %s: %+v, want %+v", kind, got, want)
	}
}

// FuzzParse: what can be read of a line of the start ledger is what Note writes.
func FuzzParse(f *testing.F) {
	r := Record{ID: "ABC", Fetcher: "f-1", URL: "http://a.test/,x",
		Deadline: time.UnixMilli(1_800_000_000_000), Line: 3}
	f.Add(r.Note(NoteLease))
	f.Add(r.Note(NoteAgain))
	f.Add("lease,1,,a/b,http://a.test/")
	f.Add("end,1,,a/b/1,http://a.test/")
	f.Fuzz(func(t *testing.T, note string) {
		kind, first := Parse(starts.Start{Note: note, At: time.Unix(0, 5)}, 7)
		if kind == "" {
			return
		}
		again, r := Parse(starts.Start{Note: first.Note(kind)}, 7)
		assert.True(t, again == kind && r.Given.Equal(first.Given) && r.Note(kind) == first.Note(kind),
			"%q is %+v, and again %+v", note, first, r)
	})
}
