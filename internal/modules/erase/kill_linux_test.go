package erase

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// killEvery is the distance between the syncs before which TestKill kills: each is tried by
// TestSoakKill.
const killEvery = 7

// TestKill kills an erasure with SIGKILL before one of its syncs. Until it has ended, no crawl begins;
// and however far it came, Resume ends it with the result, and the counts, of one that was not killed.
func TestKill(t *testing.T) { killAtSyncs(t, killEvery) }

func killAtSyncs(t *testing.T, every int) {
	dir, web := killedCrawl(t)
	reference := copyDir(t, dir)
	whole := must.Get(Run(context.Background(), eraseOptions(reference, web)))(t)
	want := contents(t, reference, weburl.Names{})
	kills := 0
	for at := 1; ; at += every {
		dir := copyDir(t, dir)
		_, done := startChild(t, dir, childConfig{Resolver: web.ResolverAddr(), Names: zebra, KillAt: at})
		var ended *exec.ExitError
		if err := <-done; err == nil {
			break
		} else if !errors.As(err, &ended) || ended.Exited() {
			t.Fatalf("sync %d: %v", at, err)
		}
		kills++
		o := eraseOptions(dir, web)
		j := must.Get(openJournal(o.Crawl.DataDir))(t)
		if j != nil {
			assert.Fails(crawl.Open(o.Crawl, slog.New(slog.DiscardHandler)))(t, crawl.ErrErasing, "sync", at,
				"a crawl begins meanwhile")
			assert.Fails(crawl.OpenRetrier(o.Crawl, nil))(t, crawl.ErrErasing, "sync", at,
				"URLs are put back meanwhile")
			r, err := Resume(context.Background(), o)
			must.Do(t, err, "sync", at)
			compareReports(t, r, whole)
		} else if at < 4 { // not begun
			must.Get(Run(context.Background(), o))(t)
		}
		if got := contents(t, dir, weburl.Names{}); !slices.Equal(got, want) {
			t.Fatalf("sync %d: what is left differs:\n%s", at, difference(got, want))
		}
		assert.Equal(t, len(filesNaming(t, dir+"/data")), 0, "sync", at, "it is still named in")
		assert.Equal(t, tombstoned(t, dir), whole.Records(), "sync", at, "tombstones of records were erased")
		checkWhole(t, dir)
		if t.Failed() {
			return
		}
	}
	assert.AtLeast(t, kills*every, 10, "only", kills, "kills")
	t.Logf("%d kills", kills)
}
