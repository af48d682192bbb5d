package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/memnet"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestGoldenLeaseMark: the value of the mark of a lease is what storage/FORMAT.md says, byte by byte.
func TestGoldenLeaseMark(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	full := leaseRecord{
		ID: "ABC", Fetcher: "f-1", URL: "http://a.test/?q=1&r", Address: "192.0.2.1", Given: at, Deadline: at.Add(time.Minute),
		Delay: 1500 * time.Millisecond, Line: 3, Version: "v", Offset: 4711, Again: true,
	}
	for want, l := range map[string]leaseRecord{
		`{"id":"ABC","fetcher":"f-1","url":"http://a.test/?q=1\u0026r","address":"192.0.2.1",` +
			`"given":"2026-03-04T05:06:07.000000008Z","deadline":"2026-03-04T05:07:07.000000008Z","delay":1500000000,` +
			`"line":3,"version":"v","offset":4711,"again":true}`: full,
		`{"id":"A","fetcher":"f","url":"http://a.test/","given":"2026-03-04T05:06:07.000000008Z",` +
			`"deadline":"2026-03-04T05:06:07.000000008Z","delay":0,"offset":0}`: {
			ID: "A", Fetcher: "f", URL: "http://a.test/", Given: at, Deadline: at,
		},
	} {
		if got := string(l.encode()); got != want {
			t.Errorf("the mark is\n%s, want\n%s", got, want)
		}
	}
}

// TestGoldenQueueMarks: the marks of what clients set are what storage/FORMAT.md says.
func TestGoldenQueueMarks(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		r := &clientRun{o: clientOptions(t, web)}
		r.remoteRun = startRemote(t, r.o)
		r.discover("http://a.test/", "http://b.test/")
		r.set("b.test", func(s *QueueSettings) { s.Limit = 12345 })
		if err := r.SetDefaultDelay(t.Context(), 1500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := r.SetActive(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		r.end()
		s, err := storage.Open(r.o.DataDir, storage.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for name, want := range map[string]string{"limit/2": "12345", "delay": "1500000000", "inactive": "1"} {
			if got, err := s.Mark(name); err != nil || string(got) != want {
				t.Errorf("mark %s is %q, %v, want %q", name, got, err, want)
			}
		}
	})
}
