package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// wantClean looks into what a crawl left: it is sound, and no deletion is left.
func wantClean(t *testing.T, s *storage.Store) {
	t.Helper()
	for _, prefix := range []string{sweep.MarkDelete, sweep.MarkDeleteAll} {
		marks, err := s.Marks(prefix)
		assert.True(t, err == nil && len(marks) <= 0, "marks %v are left (%v)", marks, err)
	}
	assert.NoError(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
}

// TestDelete deletes the URLs of a host of a running crawl, then those of all hosts. They are fetched
// again when they are found again.
func TestDelete(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 200), nil), site("b.test", "", paths("/", 10), nil))
		o := testOptions(t, web)
		e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		ctx := context.Background()
		assert.Fails(e.Delete(ctx, Deletion{Host: "c.test"}))(t, inspect.ErrUnknown, "deletion of an unknown host")
		testkit.Until(t, "some pages are fetched", func() bool {
			return len(web.Requests().Host("a.test").Pages()) > 10
		})
		deleted, err := e.Delete(ctx, Deletion{Host: "a.test"})
		must.True(t, err == nil && deleted == 201, "%d URLs are deleted, want 201: %v", deleted, err)
		before := len(web.Requests().Host("a.test").Pages())
		assert.AtMost(t, waits(t, e, "a.test"), 0, "URLs wait")
		must.Get(e.Add(ctx, additions(t, web.URL("a.test", "/aa"), web.URL("a.test", "/hh"))))(t)
		testkit.Until(t, "a.test and b.test are done",
			func() bool { return waits(t, e, "a.test")+waits(t, e, "b.test") == 0 })
		// some were under way
		if after := len(web.Requests().Host("a.test").Pages()); after < before+2 || after > before+4 {
			t.Errorf("%d pages before the deletion, %d after", before, after)
		}
		if n, err := e.Delete(ctx, Deletion{Before: time.Unix(1, 0)}); n > 0 || err != nil {
			t.Errorf("%d URLs of before 1970 are deleted: %v", n, err)
		}
		known := e.store.Counters().URLs
		assert.Returns(e.Delete(ctx, Deletion{Before: time.Now().Add(time.Hour)}))(t, known, "URLs are deleted")
		if n, err := e.Delete(ctx, Deletion{}); n > 0 || err != nil {
			t.Errorf("%d URLs are deleted once more: %v", n, err)
		}
		wantClean(t, e.store.(*storage.Store))
		stop()
		assert.Fails(e.Delete(ctx, Deletion{}))(t, ErrNotRunning, "deletion after the end")
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// TestHeavyDeletionGoesOn: deletions that an earlier process began are ended by the next, before anything
// of them is requested.
func TestHeavyDeletionGoesOn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const all, gone, below = 26_000, 9_000, 25_900
		web := serve(site("a.test", "", nil, nil), site("b.test", "", nil, nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Millisecond
		old, fresh := parse(t, web.URL("b.test", "/old")), parse(t, web.URL("b.test", "/new"))
		commitTo(t, o, func(s *storage.Store, b *storage.Batch) {
			for n := range all {
				u := parse(t, web.URL("a.test", fmt.Sprintf("/%d", n)))
				b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: time.Unix(1e9, 0)})
			}
			b.Found = append(b.Found, storage.Found{URL: old, Fingerprint: s.Fingerprint(old), At: time.Unix(1e9, 0)},
				storage.Found{URL: fresh, Fingerprint: s.Fingerprint(fresh), At: time.Unix(2e9, 0)})
			b.Purges = []storage.Purge{{Host: 1, Below: gone}}
			ofHost := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, gone), below)
			b.Marks = map[string][]byte{
				sweep.MarkDelete + "1":             binary.BigEndian.AppendUint64(ofHost, 0),
				sweep.MarkDeleteAll + "1500000000": []byte(`{"before":1500000000,"host":2}`),
			}
		})
		crawl(t, o, web.URL("a.test", "/25999"), web.URL("b.test", "/new"))
		assert.Equal(t, len(web.Requests().Host("a.test").Pages()), all-below, "pages of a.test were requested")
		assert.Equal(t, len(web.Requests().Path("/new")), 1, "requests for a URL that was not deleted")
		s := must.Get(storage.Open(o.DataDir, storage.Options{}))(t)
		defer s.Close()
		wantClean(t, s)
		_, _, err := s.Lookup(old)
		assert.True(t, errors.Is(err, storage.ErrNotFound), "an old URL is still known (%v)", err)
	})
}
