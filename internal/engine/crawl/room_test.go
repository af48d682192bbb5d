package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestSeedsNeedRoom: a crawl that begins on a disk with too little room writes nothing, says so,
// and goes on when there is some.
func TestSeedsNeedRoom(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web, seeds := fullWeb(t, serve)
		o := testOptions(t, web)
		o.MinFree = 1 << 20
		e := must.Get(Open(o, testLog(t)))(t)
		var d testDisk
		e.space.Free = d.free
		d.full.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if sum, err := e.Run(ctx, seeds); err != nil || !sum.Stopped() {
			t.Errorf("stopped while there is no room: %t, %v", sum.Stopped(), err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := e.Run(context.Background(), seeds)
			ended <- err
		}()
		testkit.Until(t, "the crawl stands still", func() bool {
			s := e.Status()
			return s.State == "stalled" && strings.Contains(s.Reason, "storage.min_free")
		})
		if n := e.store.Counters().URLs; n != 0 || web.Served() != 0 {
			t.Errorf("%d URLs are written, %d requests made", n, web.Served())
		}
		d.full.Store(false)
		must.Do(t, errors.Join(<-ended, e.Close()))
		checkWhole(t, web, o, 0)
	})
}

// TestImportNeedsRoom: an import into a database that no crawl uses leaves the reserve free.
func TestImportNeedsRoom(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		o.MinFree = 1 << 62
		i := must.Get(OpenImporter(o, []Seed{seed(t, web.URL("a.test", "/"))}))(t)
		defer i.Close()
		assert.Fails(i.Add(context.Background(), additions(t, web.URL("a.test", "/1"))))(t, storage.ErrNoSpace,
			"import without room")
	})
}

// TestHeavyMaxSize: a crawl whose database is as large as it may be stands still and says so; what was
// acknowledged is there, and with a higher limit it goes on.
func TestHeavyMaxSize(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		o.Storage.MaxBytes, o.ShutdownGrace, o.ExitWhenDone = 8<<20, 100*time.Millisecond, false
		e := must.Get(Open(o, testLog(t)))(t)
		ended := make(chan error, 1)
		running, stop := context.WithCancel(context.Background())
		defer stop()
		go func() {
			_, err := e.Run(running, []Seed{seed(t, web.URL("a.test", "/"))})
			ended <- err
		}()
		testkit.Until(t, "the crawl runs", func() bool { return e.mailbox.Load() != nil })
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		acknowledged := make(chan int, 1)
		go func() {
			total := 0
			for n := 0; ; n++ {
				list := make([]Addition, MaxAdditions)
				for i := range list {
					list[i] = Addition{URL: parse(t,
						web.URL("a.test", fmt.Sprintf("/no/%d/%d/%s", n, i, strings.Repeat("x", 200))))}
				}
				sum, err := e.Add(ctx, list)
				if total += sum.Added; err != nil {
					acknowledged <- total
					return
				}
			}
		}()
		testkit.Until(t, "the crawl stands still", func() bool {
			s := e.Status()
			return s.State == "stalled" && strings.Contains(s.Reason, "storage.max_size") && s.InFlight == 0
		})
		served := web.Served()
		beats(t, e, 1)
		assert.Equal(t, web.Served(), served, "requests while the database is full")
		cancel()
		total := <-acknowledged
		assert.AtLeast(t, total, 10_000, "only URLs went in")
		stop()
		assert.Is(t, <-ended, storage.ErrNoSpace, "the end of a crawl that cannot write")
		must.Do(t, e.Close())
		s := must.Get(storage.Open(o.DataDir, storage.Options{}))(t)
		n := s.Counters().URLs
		assert.True(t, n >= uint64(total) && s.Close() == nil, "%d URLs are there, %d were acknowledged", n, total)
		o.Storage.MaxBytes = 0
		e, end := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "it goes on", func() bool { return web.Served() > served && e.Status().State == "running" })
		end()
	})
}
