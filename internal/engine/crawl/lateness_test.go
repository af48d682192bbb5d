//go:build unix

package crawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkLateness crawls many hosts with a delay and reports how long after the
// instant at which politeness allowed a request the server saw the request. It
// fails if one came early.
func BenchmarkLateness(b *testing.B) {
	for _, c := range []struct {
		hosts, pages int
		delay        time.Duration
	}{
		{2_000, 8, time.Second},
		{10_000, 5, 10 * time.Second},
	} {
		b.Run(fmt.Sprintf("hosts=%d/delay=%v", c.hosts, c.delay), func(b *testing.B) {
			m := testweb.Mesh{Hosts: c.hosts, Pages: c.pages, Links: 6, PageBytes: 2 << 10, Addresses: 100}
			web := startMesh(b, m, testweb.Config{})
			var late []time.Duration
			for b.Loop() {
				late = append(late, lateness(b, web, m, c.delay)...)
			}
			slices.Sort(late)
			assert.True(b, late[0] >= 0, "a request came %v early", -late[0])
			for _, p := range []int{50, 99, 100} {
				b.ReportMetric(float64(late[(len(late)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
			}
			b.ReportMetric(float64(len(late))/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// lateness crawls a mesh and returns by how much each gap was longer than the
// delay, but for the first gaps of each host.
func lateness(b *testing.B, web *testweb.Web, m testweb.Mesh, delay time.Duration) (late []time.Duration) {
	o := meshOptions(b, web)
	o.Workers = 256
	o.GiveUpAfter = time.Minute
	o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerIP = delay, 1000
	spread(b, o, web, m)
	e, err := Open(o, testLog(b))
	must.Do(b, err)
	_, err = e.Run(context.Background(), nil)
	must.Do(b, errors.Join(err, e.Close()))
	count := make(map[string]int)
	ended := make(map[string]time.Time)
	for _, q := range web.Requests() {
		if count[q.Host]++; count[q.Host] > 3 {
			late = append(late, q.Start.Sub(ended[q.Host])-delay)
		}
		ended[q.Host] = q.End
	}
	return late
}

// spread makes a store that knows all pages of a mesh, so that nothing waits for a discovery. The
// restart holds of its hosts are spread over one delay, so that they are not all due at once.
func spread(b *testing.B, o Options, web *testweb.Web, m testweb.Mesh) {
	s, err := storage.Open(o.DataDir, storage.Options{})
	must.Do(b, err)
	var batch storage.Batch
	for h := range m.Hosts {
		batch.Seeds = append(batch.Seeds, storage.SeedRow{URL: web.URL(m.Host(h), "/"), Value: []byte{}})
		for i := range m.Pages {
			u := seed(b, web.URL(m.Host(h), m.Path(i))).URL
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: time.Now()})
		}
	}
	done, err := s.Commit(&batch)
	must.Do(b, err)
	batch = storage.Batch{}
	now := time.Now().Add(time.Second)
	for _, t := range done.Hosts {
		polite := politeness.NewHost(&o.Frontier.Politeness, politeness.State{}, now)
		polite.HoldFor(now, rand.N(o.Frontier.Politeness.Delay), politeness.ReasonStart)
		state := must.Get(polite.State(now).AppendBinary(nil))(b)
		batch.Hosts = append(batch.Hosts, storage.HostUpdate{Host: t.Host, Politeness: state})
	}
	_, err = s.Commit(&batch)
	must.Do(b, errors.Join(err, s.Close()))
}
