package crawl

import (
	"context"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyMemory: what a crawl keeps in memory does not grow with the URLs it knows.
// It is not parallel, because it weighs the heap of the whole process. In real
// time: nothing in it waits but for the disk.
func TestHeavyMemory(t *testing.T) {
	mesh := testweb.Mesh{Hosts: 4, Pages: 20_000, Links: 10, PageBytes: 1 << 10}
	web := must.Get(testweb.NewMesh(mesh, testweb.Config{CountOnly: true}))(t)
	defer web.Close()
	few := weigh(t, web, mesh, 500)
	many := weigh(t, web, mesh, 10_500)
	t.Logf("with 2,000 URLs %d KiB, with 42,000 URLs %d KiB", few>>10, many>>10)
	assert.AtMost(t, many-few, 40_000*25, "40,000 more URLs take KiB more")
}

// weigh is how much the heap grows by a crawl in full swing that has so many URLs
// queued on each host.
func weigh(t *testing.T, web *testweb.Web, mesh testweb.Mesh, urls int) int64 {
	t.Helper()
	o := testOptions(t, web)
	o.Mode = frontier.ModeAny
	o.Frontier.Politeness.Delay = 5 * time.Millisecond
	o.Archive.Formats = []string{archive.FormatNone}
	fill(t, o, web, mesh, urls)
	before := heapInUse()
	e := must.Get(Open(o, testLog(t)))(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, nil)
		ended <- err
	}()
	for from := web.Served(); web.Served() < from+200; {
		time.Sleep(time.Millisecond)
	}
	after := heapInUse()
	stop()
	assert.NoError(t, <-ended)
	assert.NoError(t, e.Close())
	return int64(after) - int64(before)
}

// fill makes a store with so many URLs of each host of a mesh.
func fill(t *testing.T, o Options, web *testweb.Web, mesh testweb.Mesh, urls int) {
	t.Helper()
	s := must.Get(storage.Open(o.DataDir, storage.Options{}))(t)
	for h := range mesh.Hosts {
		var b storage.Batch
		for i := range urls {
			u := seed(t, web.URL(mesh.Host(h), mesh.Path(i))).URL
			b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: time.Now()})
		}
		must.Get(s.Commit(&b))(t)
	}
	must.Do(t, s.Close())
}
