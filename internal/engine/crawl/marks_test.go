package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestGoldenQueueMarks: the marks of what clients set are what storage/FORMAT.md says.
func TestGoldenQueueMarks(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		r := &clientRun{o: clientOptions(t, web)}
		r.remoteRun = startRemote(t, r.o)
		r.discover("http://a.test/", "http://b.test/")
		r.set("b.test", func(s *QueueSettings) { s.Limit = 12345 })
		must.Do(t, r.SetDefaultDelay(t.Context(), 1500*time.Millisecond))
		must.Do(t, r.SetActive(t.Context(), false))
		r.end()
		s := must.Get(storage.Open(r.o.DataDir, storage.Options{ReadOnly: true}))(t)
		defer s.Close()
		for name, want := range map[string]string{"limit/2": "12345", "delay": "1500000000", "inactive": "1"} {
			got, err := s.Mark(name)
			assert.True(t, err == nil && string(got) == want, "mark %s is %q, %v, want %q", name, got, err, want)
		}
	})
}
