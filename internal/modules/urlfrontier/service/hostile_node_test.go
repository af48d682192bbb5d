package service

import (
	"context"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestOddCrawlIDs: whatever a crawl is called, it is one of its own, and its files are below the data
// directory. It outlasts a restart, and goes when it is deleted.
func TestOddCrawlIDs(t *testing.T) {
	t.Parallel()
	ids := []string{
		"../x", "../../x", "..", ".", "/", "/etc/x", "a/b", `a\b`, "a\x00b", "deleted-x", "x.y", "X", "x", "x ",
		"%2e%2e", "CON",
		"\u202e", "bücher", "\U0001f577", "default", "open", strings.Repeat("i", 128), strings.Repeat("/", 128),
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "above", "data")
	must.Do(t, os.MkdirAll(dir, 0o750))
	crawls, stop := startNode(t, dir, nil)
	c := dial(t, start(t, Options{}, crawls).Address())
	for n, id := range ids {
		i := info(number("http://one.test/", n))
		i.CrawlID = id
		assert.Equal(t, c.put(discovered(i))[0].GetStatus(), urlfrontierpb.AckMessage_OK, id)
	}
	for _, id := range []string{strings.Repeat("i", 129), strings.Repeat("../", 1000)} {
		i := info("http://one.test/")
		i.CrawlID = id
		assert.Equal(t, c.put(discovered(i))[0].GetStatus(), urlfrontierpb.AckMessage_FAIL, len(id), "bytes")
	}
	err := filepath.WalkDir(parent, func(path string, d fs.DirEntry, err error) error {
		assert.True(t, d.IsDir() || strings.HasPrefix(path, dir+string(filepath.Separator)),
			"%s is outside of the data directory", path)
		return err
	})
	assert.NoError(t, err)
	stop()
	crawls, _ = startNode(t, dir, nil)
	c = dial(t, start(t, Options{}, crawls).Address())
	want := slices.Clone(ids)
	slices.Sort(want)
	assert.Slice(t, do[pbList](c, "ListCrawls", &urlfrontierpb.Local{}).GetValues(), want, "after a restart there")
	for n, id := range ids {
		q := do[pbItem](c, "GetURLStatus", &pbStatus{Url: number("http://one.test/", n), CrawlID: id})
		assert.Equal(t, q.GetKnown().GetInfo().GetCrawlID(), id, "the URL of is one of")
		assert.Equal(t, do[pbStats](c, "GetStats", &pbQueue{CrawlID: id}).GetSize(), 1, id)
		assert.Equal(t, do[pbLong](c, "DeleteCrawl", &pbCrawl{Value: id}).GetValue(), 1, id, "URLs are deleted")
	}
	if left, err := os.ReadDir(filepath.Join(dir, "crawls")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestOddNumbers: dates, times and numbers at their bounds are taken for what they mean, and outlast a
// restart.
func TestOddNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crawls, stop := startNode(t, dir, nil)
	c := dial(t, start(t, Options{}, crawls).Address())
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
	dueNow := []uint64{1, 1_000_000_000}
	future := []uint64{1 << 33, maxUnix, maxUnix + 1, 1 << 40, math.MaxInt64, 1 << 63, math.MaxUint64}
	var due []string
	for n, date := range slices.Concat(dueNow, future) {
		i := keyed(number("http://one.test/", n), "one.test")
		item := known(i, 0)
		item.GetKnown().RefetchableFromDate = date
		assert.Equal(t, c.put(item)[0].GetStatus(), urlfrontierpb.AckMessage_OK, "date", date)
		if n < len(dueNow) {
			due = append(due, i.GetUrl())
		}
	}
	c.put(discovered(info("http://blocked.test/")), discovered(info("http://slow.test/1")),
		discovered(info("http://slow.test/2")), discovered(info("http://limited.test/")))
	do[pbEmpty](c, "BlockQueueUntil", &urlfrontierpb.BlockQueueParams{Key: "blocked.test", Time: math.MaxUint64})
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{Key: "slow.test", DelayRequestable: math.MaxUint32})
	do[pbEmpty](c, "SetCrawlLimit", &urlfrontierpb.CrawlLimitParams{Key: "limited.test", Limit: math.MaxUint32})
	most := &urlfrontierpb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: math.MaxUint32, DelayRequestable: math.MaxUint32}
	got := c.get(most)
	slices.Sort(got)
	assert.Slice(t, got, []string{"http://limited.test/", due[0], "http://slow.test/1"}, "are handed out")
	if _, err := try[pbLong](c, "PurgeURLs",
		&urlfrontierpb.PurgeUrlParams{Days: math.MaxUint32}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("PurgeURLs: %v", err)
	}
	check := func(c *client) {
		t.Helper()
		for n, date := range future {
			u := number("http://one.test/", len(dueNow)+n)
			item := do[pbItem](c, "GetURLStatus", &pbStatus{Url: u})
			got := item.GetKnown().GetRefetchableFromDate()
			assert.True(t, got == min(date, maxUnix) || got >= 1<<32-1, "date %d of %s has become %d", date, u, got)
		}
		for _, q := range []*urlfrontierpb.Pagination{{Start: math.MaxUint32},
			{Start: math.MaxUint32, Size: math.MaxUint32}} {
			assert.Equal(t, len(do[urlfrontierpb.QueueList](c, "ListQueues", q).GetValues()), 0, q)
		}
		all := list[pbItem](c, "ListURLs", &urlfrontierpb.ListUrlParams{Size: math.MaxUint32})
		assert.Equal(t, len(all), len(dueNow)+len(future)+4, "URLs are listed")
		held := &urlfrontierpb.GetParams{MaxUrlsPerQueue: math.MaxUint32}
		for _, u := range c.get(held) {
			if u != due[1] { // the only one that is due and not held
				t.Errorf("%s is handed out", u)
			}
		}
	}
	check(c)
	stop()
	crawls, _ = startNode(t, dir, nil)
	c = dial(t, start(t, Options{}, crawls).Address())
	testkit.Until(t, "the condition", func() bool { return do[pbStats](c, "GetStats", &pbQueue{}).GetSize() > 0 })
	check(c)
}

// TestDeletionsUnderLoad: while clients put and get, queues, crawls and old URLs are deleted. Every
// item is answered, and the service is whole behind it.
func TestDeletionsUnderLoad(t *testing.T) {
	t.Parallel()
	crawls, _ := startNode(t, t.TempDir(), nil)
	late := Options{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }} // PurgeURLs finds all old
	c := dial(t, start(t, late, crawls).Address())
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
	ids := []string{"", "one", "two"}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	work := func(step func(n int, id string)) {
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				step(n, ids[n%len(ids)])
			}
		})
	}
	item := func(n int, id string) *urlfrontierpb.URLItem {
		i := info(number("http://host-"+string(rune('a'+n%5))+".test/", n))
		i.CrawlID = id
		return discovered(i)
	}
	for range 2 {
		work(func(n int, id string) {
			var items []*urlfrontierpb.URLItem
			for i := range 50 {
				items = append(items, item(n*50+i, id))
			}
			assert.Equal(t, len(c.put(items...)), len(items), "items are answered")
		})
	}
	work(func(_ int, id string) {
		urls := c.get(
			&urlfrontierpb.GetParams{MaxUrlsPerQueue: 10, Item: &urlfrontierpb.GetParams_CrawlID{CrawlID: id}})
		var items []*urlfrontierpb.URLItem
		for _, u := range urls {
			i := info(u)
			i.CrawlID = id
			items = append(items, known(i, 0))
		}
		c.put(items...)
	})
	rounds := make(chan struct{}, 1)
	work(func(n int, id string) {
		switch n % 4 {
		case 0:
			_, _ = try[pbLong](c, "PurgeURLs", &urlfrontierpb.PurgeUrlParams{Days: 1, CrawlID: id})
		case 1:
			_, _ = try[pbLong](c, "DeleteQueue", &pbQueue{Key: "host-a.test", CrawlID: id})
		case 2:
			_, _ = try[pbLong](c, "DeleteCrawl", &pbCrawl{Value: id})
		case 3:
			_, _ = tryList[pbItem](c, "ListURLs", &urlfrontierpb.ListUrlParams{CrawlID: id, Size: 1000})
		}
		select {
		case rounds <- struct{}{}:
		case <-ctx.Done():
		}
	})
	for range 48 {
		<-rounds
	}
	stop()
	working.Wait()
	c.deleteAll()
	for _, id := range ids {
		i := info("http://host-a.test/again")
		i.CrawlID = id
		assert.Equal(t, c.put(discovered(i))[0].GetStatus(), urlfrontierpb.AckMessage_OK, id)
		testkit.Until(t, "the condition", func() bool {
			return len(c.get(&urlfrontierpb.GetParams{Item: &urlfrontierpb.GetParams_CrawlID{CrawlID: id}})) == 1
		})
		s := do[pbStats](c, "GetStats", &pbQueue{CrawlID: id})
		assert.True(t, s.GetSize() == 1 && s.GetInProcess() == 1, "%q: %v", id, s)
	}
}

// TestDeleteCrawlUnderStream: a stream goes on when its crawl is deleted. What it puts then is in a new
// crawl of the id.
func TestDeleteCrawlUnderStream(t *testing.T) {
	t.Parallel()
	crawls, _ := startNode(t, t.TempDir(), nil)
	c := dial(t, start(t, Options{}, crawls).Address())
	stream := c.open(t.Context(), "PutURLs")
	for round := range 5 {
		i := info("http://one.test/")
		i.CrawlID = "../x"
		must.Do(t, stream.SendMsg(discovered(i)))
		ack := new(urlfrontierpb.AckMessage)
		if err := stream.RecvMsg(ack); err != nil || ack.GetStatus() != urlfrontierpb.AckMessage_OK {
			t.Fatalf("round %d: %v, %v", round, ack, err)
		}
		assert.Equal(t, do[pbLong](c, "DeleteCrawl", &pbCrawl{Value: "../x"}).GetValue(), 1, "round", round)
	}
	must.Do(t, stream.CloseSend())
	assert.Equal(t, stream.RecvMsg(new(urlfrontierpb.AckMessage)), io.EOF, "the stream ends with")
}
