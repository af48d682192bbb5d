package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	urlfrontierpb "github.com/amble-crawler/amble/internal/urlfrontier/proto"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/node"
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
	n, err := node.Open(node.DefaultOptions(o), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		over.Wait()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
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
		if len(urls) != 1 {
			t.Fatalf("%s: %q", host, urls)
		}
		if host == "slow.test" {
			c.put(known(info(urls[0]), 0))
		}
	}
	do[pbEmpty](c, "SetActive", &urlfrontierpb.Active{State: false})
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	stop()

	crawls, _ = startNode(t, dir, nil)
	c = dial(t, start(t, Options{}, crawls).Address())
	eventually(t, func() bool { return !do[urlfrontierpb.Boolean](c, "GetActive", &urlfrontierpb.Local{}).GetState() })
	do[pbEmpty](c, "SetActive", &urlfrontierpb.Active{State: true})
	eventually(t, func() bool { return len(c.get(ofQueue("free.test", 1, 60))) == 1 })
	for _, host := range []string{"blocked.test", "slow.test", "held.test", "limited.test"} {
		if urls := c.get(ofQueue(host, 1, 60)); len(urls) != 0 {
			t.Errorf("after the restart %s hands out %q", host, urls)
		}
	}
	if q := do[pbStats](c, "GetStats", &pbQueue{Key: "held.test"}); q.GetInProcess() != 1 || q.GetSize() != 2 {
		t.Errorf("%v", q)
	}
}
