package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// nodeCrawls are the crawls of a node, with real engines.
type nodeCrawls struct{ *node.Node }

// Use implements Crawls.
func (n nodeCrawls) Use(ctx context.Context, id string, create bool) (Crawl, func(), error) {
	e, release, err := n.Node.Use(ctx, id, create)
	if err != nil {
		return nil, nil, nodeError(err)
	}
	return e, release, nil
}

// Delete implements Crawls.
func (n nodeCrawls) Delete(ctx context.Context, id string) (uint64, error) {
	urls, err := n.Node.Delete(ctx, id)
	return urls, nodeError(err)
}

func nodeError(err error) error {
	if errors.Is(err, node.ErrNoCrawl) {
		err = fmt.Errorf("%w: %w", ErrNoCrawl, err)
	}
	if errors.Is(err, node.ErrID) {
		err = fmt.Errorf("%w: %w", ErrCrawlID, err)
	}
	return err
}

// startNode starts a node in a directory, whose crawls only remote fetchers fetch. stop ends it; it
// ends with the test in any case.
func startNode(t testing.TB, dir string, change func(*crawl.Options)) (crawls Crawls, stop func()) {
	t.Helper()
	o := crawl.DefaultOptions()
	o.DataDir, o.Archive.Dir = dir, filepath.Join(dir, "output")
	o.Archive.Formats = []string{archive.FormatNone}
	o.Fetch.UserAgent = "amble-test"
	o.MinFree, o.Workers, o.ExitWhenDone, o.Mode, o.IgnoreRobots = 0, 0, false, frontier.ModeAny, true
	o.Storage.NoSync = true
	if change != nil {
		change(&o)
	}
	n := must.Get(node.Open(node.DefaultOptions(o), slog.New(slog.DiscardHandler)))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		_, err := n.Run(ctx)
		assert.NoError(t, err)
	})
	stop = sync.OnceFunc(func() {
		cancel()
		over.Wait()
		assert.NoError(t, n.Close())
	})
	t.Cleanup(stop)
	return nodeCrawls{n}, stop
}

// TestConformanceOfEngine holds the same assertions against real engines.
func TestConformanceOfEngine(t *testing.T) {
	for name, check := range conformance {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crawls, _ := startNode(t, t.TempDir(), nil)
			s := start(t, Options{}, crawls)
			check(t, dial(t, s.Address()))
		})
	}
}

// One service goes through all of them, with deletions of the crawls in between, as the tests of the
// reference implementation do.
func TestConformanceInTurn(t *testing.T) {
	crawls, _ := startNode(t, t.TempDir(), nil)
	c := dial(t, start(t, Options{}, crawls).Address())
	for name, check := range conformance {
		t.Run(name, func(t *testing.T) {
			c := &client{t, c.conn}
			c.deleteAll()
			check(t, c)
		})
	}
}

// What clients have set and what they hold outlasts a restart.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	crawls, stop := startNode(t, dir, nil)
	s := start(t, Options{}, crawls)
	c := dial(t, s.Address())
	for _, host := range []string{"blocked", "slow", "held", "limited", "free"} {
		c.put(discovered(info("http://"+host+".test/1")), discovered(info("http://"+host+".test/2")))
	}
	do[pbEmpty](c, "BlockQueueUntil", &urlfrontierpb.BlockQueueParams{Key: "blocked.test",
		Time: uint64(time.Now().Add(time.Hour).Unix())})
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{Key: "slow.test", DelayRequestable: 3600})
	c.put(known(info("http://limited.test/1"), 0))
	do[pbEmpty](c, "SetCrawlLimit", &urlfrontierpb.CrawlLimitParams{Key: "limited.test", Limit: 1})
	for _, host := range []string{"slow.test", "held.test"} {
		urls := c.get(ofQueue(host, 1, 3600))
		must.True(t, len(urls) == 1, "%s: %q", host, urls)
		if host == "slow.test" {
			c.put(known(info(urls[0]), 0))
		}
	}
	do[pbEmpty](c, "SetActive", &urlfrontierpb.Active{State: false})
	must.Do(t, s.Close(t.Context()))
	stop()

	crawls, _ = startNode(t, dir, nil)
	c = dial(t, start(t, Options{}, crawls).Address())
	testkit.Until(t, "the condition", func() bool {
		return !do[urlfrontierpb.Boolean](c, "GetActive", &urlfrontierpb.Local{}).GetState()
	})
	do[pbEmpty](c, "SetActive", &urlfrontierpb.Active{State: true})
	testkit.Until(t, "the condition", func() bool { return len(c.get(ofQueue("free.test", 1, 60))) == 1 })
	for _, host := range []string{"blocked.test", "slow.test", "held.test", "limited.test"} {
		assert.Equal(t, len(c.get(ofQueue(host, 1, 60))), 0, "after the restart", host, "hands out")
	}
	q := do[pbStats](c, "GetStats", &pbQueue{Key: "held.test"})
	assert.True(t, q.GetInProcess() == 1 && q.GetSize() == 2, "%v", q)
}

// TestPurge: PurgeURLs deletes what was created too long ago, whatever its state, and nothing younger.
// What it has deleted is new when it is found again, also after a restart.
func TestPurge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crawls, stop := startNode(t, dir, nil)
	c := dial(t, start(t, Options{}, crawls).Address())
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
	c.put(discovered(info("http://one.test/held")))
	urls := c.get(ofQueue("one.test", 1, 3600))
	must.True(t, len(urls) == 1, "%q", urls)
	later := time.Now().Add(time.Hour).Unix()
	c.put(known(info("http://one.test/done"), 0), known(info("http://one.test/later"), later),
		discovered(info("http://one.test/waits")), discovered(info("http://two.test/waits")))
	young := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(young)) // times of creation are in seconds
	c.put(discovered(info("http://one.test/young")), known(info("http://one.test/young-done"), 0),
		discovered(info("http://three.test/young")))

	tomorrow := Options{Now: func() time.Time { return young.Add(24 * time.Hour) }}
	c = dial(t, start(t, tomorrow, crawls).Address())
	for _, x := range []struct {
		r    *urlfrontierpb.PurgeUrlParams
		want uint64
	}{
		{&urlfrontierpb.PurgeUrlParams{Days: 2}, 0}, {&urlfrontierpb.PurgeUrlParams{Days: 1, CrawlID: "OTHER"}, 0},
		{&urlfrontierpb.PurgeUrlParams{Days: 1, Key: "three.test"}, 0},
		{&urlfrontierpb.PurgeUrlParams{Days: 1, Key: "one.test"}, 4}, {&urlfrontierpb.PurgeUrlParams{Days: 1}, 1},
		{&urlfrontierpb.PurgeUrlParams{Days: 1}, 0},
	} {
		assert.Equal(t, do[pbLong](c, "PurgeURLs", x.r).GetValue(), x.want, x.r, "purged")
	}
	check := func(c *client) {
		t.Helper()
		s := do[pbStats](c, "GetStats", &pbQueue{})
		assert.True(t, s.GetSize() == 2 && s.GetCounts()["completed"] == 1 && s.GetInProcess() == 0, "%v", s)
		for _, u := range []string{"held", "done", "later", "waits"} {
			if _, err := try[pbItem](c, "GetURLStatus",
				&pbStatus{Url: "http://one.test/" + u}); status.Code(err) != codes.NotFound {
				t.Errorf("%s: %v", u, err)
			}
		}
	}
	check(c)
	stop()
	crawls, _ = startNode(t, dir, nil)
	c = dial(t, start(t, Options{}, crawls).Address())
	testkit.Until(t, "the condition", func() bool {
		return do[pbStats](c, "GetStats", &pbQueue{}).GetNumberOfQueues() > 0
	})
	check(c)
	assert.Equal(t, c.put(discovered(info("http://one.test/done")))[0].GetStatus(), urlfrontierpb.AckMessage_OK,
		"what was purged is found again")
	got := c.get(&urlfrontierpb.GetParams{})
	slices.Sort(got)
	want := []string{"http://one.test/done", "http://one.test/young", "http://three.test/young"}
	assert.Slice(t, got, want, "are handed out")
}
