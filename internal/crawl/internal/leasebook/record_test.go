package leasebook

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// TestGoldenLeaseMark: the value of the mark of a lease is what storage/FORMAT.md says, byte by byte.
func TestGoldenLeaseMark(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	full := Record{
		ID: "ABC", Fetcher: "f-1", URL: "http://a.test/?q=1&r", Address: "192.0.2.1", Given: at, Deadline: at.Add(time.Minute),
		Delay: 1500 * time.Millisecond, Line: 3, Version: "v", Offset: 4711, Again: true,
	}
	for want, l := range map[string]Record{
		`{"id":"ABC","fetcher":"f-1","url":"http://a.test/?q=1\u0026r","address":"192.0.2.1",` +
			`"given":"2026-03-04T05:06:07.000000008Z","deadline":"2026-03-04T05:07:07.000000008Z","delay":1500000000,` +
			`"line":3,"version":"v","offset":4711,"again":true}`: full,
		`{"id":"A","fetcher":"f","url":"http://a.test/","given":"2026-03-04T05:06:07.000000008Z",` +
			`"deadline":"2026-03-04T05:06:07.000000008Z","delay":0,"offset":0}`: {
			ID: "A", Fetcher: "f", URL: "http://a.test/", Given: at, Deadline: at,
		},
	} {
		if got := string(l.Encode()); got != want {
			t.Errorf("the mark is\n%s, want\n%s", got, want)
		}
	}
}

// FuzzParse: what can be read of a line of the start ledger is what Note writes.
func FuzzParse(f *testing.F) {
	r := Record{ID: "ABC", Fetcher: "f-1", URL: "http://a.test/,x", Deadline: time.UnixMilli(1_800_000_000_000), Line: 3}
	f.Add(r.Note(NoteLease))
	f.Add(r.Note(NoteAgain))
	f.Add("lease,1,,a/b,http://a.test/")
	f.Fuzz(func(t *testing.T, note string) {
		for _, kind := range []string{NoteLease, NoteAgain, NoteReport} {
			first, ok := Parse(kind, storage.Start{Note: note}, 7)
			if !ok {
				continue
			}
			if again, ok := Parse(kind, storage.Start{Note: first.Note(kind)}, 7); !ok || again != first {
				t.Errorf("%q is %+v, and again %+v", note, first, again)
			}
		}
	})
}
