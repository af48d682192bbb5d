package crawl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyKillLeavesOut kills a crawl at random moments while it leaves many URLs out. Each URL is in one state then;
// the next process goes on with what was begun, and the command given again leaves out the rest. In real time:
// processes are killed.
func TestHeavyKillLeavesOut(t *testing.T) {
	t.Parallel()
	const hosts, each, part, kills = 3, 3_000, "/bad", 6
	web := startWeb(t, recrawledSites(hosts, 1)...)
	plan := recrawl.DefaultOptions()
	c := childConfig{
		Resolver: web.ResolverAddr(), Delay: 50 * time.Millisecond, Seeds: seedsOf(web, web.Sites()),
		Formats: []string{archive.FormatNone}, Compress: archive.CompressNone, Drops: part,
		Recrawl: &plan, // so that it goes on
	}
	dir, o := prepareChild(t, c)
	queue := func(n int) {
		commitTo(t, o, func(s *storage.Store, b *storage.Batch) {
			for _, host := range web.Sites() {
				for i := range each {
					u := parse(t, web.URL(host, fmt.Sprintf("/%s-%d-%d", []string{"good", "bad"}[i%2], n, i)))
					b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u)})
				}
			}
		})
	}
	// leftOut returns how many URLs are left out, and whether a command is not done.
	leftOut := func() (n int, begun bool) {
		t.Helper()
		for u, outcome := range stored(t, o.DataDir) {
			if outcome.State != storage.Excluded {
				continue
			}
			if n++; outcome.Reason != storage.ReasonOperator || !strings.Contains(u, part) {
				t.Errorf("%s is left out: %+v", u, outcome)
			}
		}
		s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
		defer s.Close()
		must.Do(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
		return n, len(must.Get(s.Marks(sweep.MarkRetry))(t)) > 0
	}
	dropped := filepath.Join(dir, droppedFile)
	// live starts a child, and kills it after so many commits, or when it has left all out.
	live := func(commits uint64) {
		t.Helper()
		_ = os.Remove(dropped)
		before := lastCommit(t, o.DataDir)
		child, done := startChild(t, dir)
		testkit.Until(t, "the child has lived for long enough", func() bool {
			return lastCommit(t, o.DataDir) >= before+commits || exists(dropped)
		})
		must.Do(t, child.Process.Kill())
		<-done
	}
	queue(0)
	cutOff, before, begun := 0, 0, false
	for kill := 1; kill <= kills || !begun; kill++ { // a command is cut off at the end
		must.True(t, kill != kills+50, "%d commands were cut off", cutOff)
		live(1 + rand.Uint64N(8))
		least := before
		before, begun = leftOut()
		assert.True(t, before >= least, "kill %d: %d URLs are left out, %d were before it", kill, before, least)
		if begun {
			cutOff++
		} else {
			queue(kill)
		}
	}
	t.Logf("%d commands were cut off, and %d URLs left out by then", cutOff, before)

	for _, c.Drops = range []string{"/no-URL-has-this", part} { // an earlier command goes on, then it is given again
		testkit.PrepareChild(t, dir, c)
		live(math.MaxUint32)
		_, begun = leftOut()
		assert.True(t, !begun, "what was begun is not done after a command to leave out %s", c.Drops)
		for u, outcome := range stored(t, o.DataDir) {
			must.True(t, !strings.Contains(u, part) || outcome.State != storage.Queued &&
				outcome.State != storage.Retrying, "after a command to leave out %s, %s is %+v", c.Drops, u, outcome)
		}
		queue(-1)
	}
	checkPolite(t, web.Requests(), c.Delay)
}
