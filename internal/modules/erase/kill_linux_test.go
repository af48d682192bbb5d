package erase

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl"
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
			if _, err := crawl.Open(o.Crawl, slog.New(slog.DiscardHandler)); !errors.Is(err, crawl.ErrErasing) {
				t.Errorf("sync %d: a crawl begins meanwhile: %v", at, err)
			}
			if _, err := crawl.OpenRetrier(o.Crawl, nil); !errors.Is(err, crawl.ErrErasing) {
				t.Errorf("sync %d: URLs are put back meanwhile: %v", at, err)
			}
			r, err := Resume(context.Background(), o)
			if err != nil {
				t.Fatalf("sync %d: %v", at, err)
			}
			compareReports(t, r, whole)
		} else if at < 4 { // not begun
			must.Get(Run(context.Background(), o))(t)
		}
		if got := contents(t, dir, weburl.Names{}); !slices.Equal(got, want) {
			t.Fatalf("sync %d: what is left differs:\n%s", at, difference(got, want))
		}
		if left := filesNaming(t, dir+"/data"); len(left) != 0 {
			t.Errorf("sync %d: it is still named in %q", at, left)
		}
		if got := tombstoned(t, dir); got != whole.Records() {
			t.Errorf("sync %d: tombstones of %d records, %d were erased", at, got, whole.Records())
		}
		checkWhole(t, dir)
		if t.Failed() {
			return
		}
	}
	if kills*every < 10 {
		t.Errorf("only %d kills", kills)
	}
	t.Logf("%d kills", kills)
}
