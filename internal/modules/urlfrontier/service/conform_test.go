package service

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

type (
	pbEmpty  = urlfrontierpb.Empty
	pbLong   = urlfrontierpb.Long
	pbQueue  = urlfrontierpb.QueueWithinCrawlParams
	pbStats  = urlfrontierpb.Stats
	pbCrawl  = urlfrontierpb.DeleteCrawlMessage
	pbList   = urlfrontierpb.StringList
	pbItem   = urlfrontierpb.URLItem
	pbStatus = urlfrontierpb.URLStatusRequest
)

// conformance is what a client may rely on, the assertions of the reference implementation's tests
// among it. Each begins with no crawl.
var conformance = map[string]func(*testing.T, *client){
	"a known URL without a date is never handed out": func(t *testing.T, c *client) {
		acks := c.put(known(keyed("http://key1.com/", "key1.com"), 0))
		assert.True(t, len(acks) == 1, "%d acknowledged", len(acks))
		urls := c.get(ofQueue("key1.com", 1, 2))
		assert.True(t, len(urls) == 0, "%q", urls)
	},
	"the earlier date comes first": func(t *testing.T, c *client) {
		now := time.Now().Unix()
		acks := c.put(known(keyed("http://key1.com/later", "key1.com"), now),
			known(keyed("http://key1.com/sooner", "key1.com"), now-10_000))
		assert.True(t, len(acks) == 2, "%d acknowledged", len(acks))
		if urls := c.get(ofQueue("key1.com", 2, 2)); !slices.Equal(urls,
			[]string{"http://key1.com/sooner", "http://key1.com/later"}) {
			t.Errorf("%q", urls)
		}
	},
	"updates": func(t *testing.T, c *client) {
		i := keyed("http://key1.com/", "key1.com")
		acks := c.put(discovered(i), discovered(i))
		if len(acks) != 2 || acks[0].GetID() != "http://key1.com/" ||
			acks[0].GetStatus() != urlfrontierpb.AckMessage_OK ||
			acks[1].GetStatus() != urlfrontierpb.AckMessage_SKIPPED {
			t.Errorf("%v", acks)
		}
		l := do[urlfrontierpb.QueueList](c, "ListQueues", &urlfrontierpb.Pagination{})
		assert.True(t, len(l.GetValues()) == 1, "%v", l)
		urls := c.get(ofQueue("key1.com", 1, 2))
		must.True(t, slices.Equal(urls, []string{"http://key1.com/"}), "%q", urls)
		queue := &pbQueue{Key: "key1.com"}
		s := do[pbStats](c, "GetStats", queue)
		assert.True(t, s.GetNumberOfQueues() == 1 && s.GetInProcess() == 1, "%v", s)
		if urls := c.get(ofQueue("key1.com", 1, 2)); len(urls) != 0 {
			t.Errorf("one in process is handed out again: %q", urls)
		}
		testkit.Until(t, "the condition", func() bool {
			s := do[pbStats](c, "GetStats", queue)
			return s.GetNumberOfQueues() == 1 && s.GetInProcess() == 0
		})
		if n := do[pbLong](c, "DeleteQueue", queue); n.GetValue() != 1 {
			t.Errorf("%d deleted", n.GetValue())
		}
		if s := do[pbStats](c, "GetStats", queue); s.GetNumberOfQueues() != 0 || s.GetSize() != 0 {
			t.Errorf("%v", s)
		}
	},
	"the key of a URL without one": func(t *testing.T, c *client) {
		c.put(discovered(info("http://gac.icann.org?language_id=9")))
		queue := &pbQueue{Key: "gac.icann.org"}
		s := do[pbStats](c, "GetStats", queue)
		assert.True(t, s.GetSize() == 1, "%v", s)
		if n := do[pbLong](c, "DeleteQueue", queue); n.GetValue() != 1 {
			t.Errorf("%d deleted", n.GetValue())
		}
	},
	"crawl ids": func(t *testing.T, c *client) {
		l := do[pbList](c, "ListCrawls", &urlfrontierpb.Local{})
		assert.True(t, len(l.GetValues()) == 0, "%v", l)
		for _, id := range []string{"BESPOKE", "", "DEFAULT", " \t"} {
			c.put(discovered(&urlfrontierpb.URLInfo{Url: "http://urlfrontier.net/", CrawlID: id}))
		}
		for _, id := range []string{"", "BESPOKE"} {
			want := id
			if id == "" {
				want = "DEFAULT"
			}
			s := do[pbStats](c, "GetStats", &pbQueue{CrawlID: id})
			assert.True(t, s.GetSize() == 1 && s.GetCrawlID() == want && s.GetNumberOfQueues() == 1, "%q: %v", id, s)
		}
		if l := do[pbList](c, "ListCrawls",
			&urlfrontierpb.Local{}); !slices.Equal(slices.Sorted(slices.Values(l.GetValues())),
			[]string{"BESPOKE", "DEFAULT"}) {
			t.Errorf("%v", l)
		}
		for _, id := range []string{"BESPOKE", ""} {
			if n := do[pbLong](c, "DeleteCrawl", &pbCrawl{Value: id}); n.GetValue() != 1 {
				t.Errorf("%q: %d deleted", id, n.GetValue())
			}
			s := do[pbStats](c, "GetStats", &pbQueue{CrawlID: id})
			assert.True(t, s.GetSize() == 0 && s.GetNumberOfQueues() == 0, "%q: %v", id, s)
		}
	},
	"any crawl": func(t *testing.T, c *client) {
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{}) // else a host has one for all crawls
		for _, id := range []string{"A", "B", "DEFAULT"} {
			c.put(discovered(&urlfrontierpb.URLInfo{Url: "http://one.test/", CrawlID: id}))
		}
		found := make(map[string]bool)
		one :=
			&urlfrontierpb.GetParams{Item: &urlfrontierpb.GetParams_AnyCrawlID{AnyCrawlID: &urlfrontierpb.AnyCrawlID{}},
				MaxQueues: 1}
		for n, r := range []*urlfrontierpb.GetParams{one, {}} {
			for _, i := range list[urlfrontierpb.URLInfo](c, "GetURLs", r) {
				assert.True(t, !found[i.GetCrawlID()] && i.GetUrl() == "http://one.test/" && i.GetKey() == "one.test",
					"%v", i)
				found[i.GetCrawlID()] = true
			}
			want := []int{1, 3}[n]
			assert.True(t, len(found) == want, "URLs of %d crawls, want %d", len(found), want)
		}
	},
	"a key without a crawl is of the default crawl": func(t *testing.T, c *client) {
		c.put(discovered(info("http://one.test/")))
		urls := c.get(&urlfrontierpb.GetParams{Key: "one.test"})
		assert.True(t, len(urls) == 1, "%q", urls)
		c.put(known(info("http://one.test/"), 1))
		c.put(discovered(info("http://two.test/")))
		if urls := c.get(&urlfrontierpb.GetParams{Key: "two.test", Item: &urlfrontierpb.GetParams_CrawlID{}}); len(
			urls) != 1 {
			t.Errorf("with a blank id: %q", urls)
		}
	},
	"a known put releases a URL": func(t *testing.T, c *client) {
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
		c.put(discovered(info("http://one.test/")))
		urls := c.get(ofQueue("one.test", 1, 600))
		must.True(t, len(urls) == 1, "%q", urls)
		if urls := c.get(ofQueue("one.test", 1, 600)); len(urls) != 0 {
			t.Errorf("held, and handed out: %q", urls)
		}
		c.put(known(info("http://one.test/"), time.Now().Unix()-1))
		if urls := c.get(ofQueue("one.test", 1, 600)); len(urls) != 1 {
			t.Errorf("released, and not handed out: %q", urls)
		}
	},
	"metadata": func(t *testing.T, c *client) {
		i := info("http://one.test/")
		i.Metadata = map[string]*pbList{"depth": {Values: []string{"1", "2"}}, "empty": {}}
		c.put(discovered(i))
		l := list[urlfrontierpb.URLInfo](c, "GetURLs", ofQueue("one.test", 1, 30))
		assert.True(t, len(l) == 1 && slices.Equal(l[0].GetMetadata()["depth"].GetValues(), []string{"1", "2"}) &&
			len(l[0].GetMetadata()) == 2, "%v", l)
		s := do[pbItem](c, "GetURLStatus", &pbStatus{Url: "http://one.test/"})
		got := s.GetKnown().GetInfo()
		assert.True(t, proto.Equal(got.GetMetadata()["depth"], i.Metadata["depth"]), "%v", s)
	},
	"URL status": func(t *testing.T, c *client) {
		c.put(discovered(info("http://one.test/new")), known(info("http://one.test/done"), 0),
			known(info("http://one.test/later"), 4_000_000_000))
		for _, x := range []struct {
			url  string
			date uint64
		}{{"http://one.test/done", 0}, {"http://one.test/later", 4_000_000_000}} {
			s := do[pbItem](c, "GetURLStatus", &pbStatus{Url: x.url, Key: "one.test", CrawlID: "DEFAULT"})
			k := s.GetKnown()
			if k.GetInfo().GetUrl() != x.url || k.GetInfo().GetKey() != "one.test" ||
				k.GetInfo().GetCrawlID() != "DEFAULT" ||
				k.GetRefetchableFromDate() != x.date || s.GetCreationDate() == 0 {
				t.Errorf("%v", s)
			}
		}
		if s := do[pbItem](c, "GetURLStatus",
			&pbStatus{Url: "http://one.test/new"}); s.GetKnown().GetRefetchableFromDate() == 0 {
			t.Errorf("%v", s)
		}
		for code, r := range map[codes.Code][]*pbStatus{
			codes.NotFound: {{Url: "http://one.test/other"}, {Url: "http://one.test/new", CrawlID: "OTHER"},
				{Url: "http://two.test/"}, {Url: "http://one.test/new", Key: "two.test"}},
			codes.InvalidArgument: {{}, {Url: "nothing"}, {Url: "http://"}},
		} {
			for _, r := range r {
				_, err := try[pbItem](c, "GetURLStatus", r)
				assert.True(t, status.Code(err) == code, "%v: %v, want %v", r, err, code)
			}
		}
	},
	"lists and counts": func(t *testing.T, c *client) {
		var items []*pbItem
		for n := range 150 {
			items = append(items, discovered(info(number("http://one.test/Page", n))))
		}
		c.put(append(items, discovered(info("http://two.test/page")))...)
		text := func(s string) *string { return &s }
		yes := true
		l := list[pbItem](c, "ListURLs", &urlfrontierpb.ListUrlParams{})
		assert.True(t, len(l) == 100, "%d by default", len(l))
		for _, x := range []struct {
			r    *urlfrontierpb.ListUrlParams
			want int
		}{
			{&urlfrontierpb.ListUrlParams{Size: 1000}, 151},
			{&urlfrontierpb.ListUrlParams{Size: 1000, Start: 140}, 11},
			{&urlfrontierpb.ListUrlParams{Size: 7, Start: 3}, 7},
			{&urlfrontierpb.ListUrlParams{Size: 1000, Key: "one.test"}, 150},
			{&urlfrontierpb.ListUrlParams{Size: 1000, Key: "none.test"}, 0},
			{&urlfrontierpb.ListUrlParams{Size: 1000, CrawlID: "OTHER"}, 0},
			{&urlfrontierpb.ListUrlParams{Size: 1000, Filter: text("Page14")}, 11},
			{&urlfrontierpb.ListUrlParams{Size: 1000, Filter: text("page14")}, 0},
			{&urlfrontierpb.ListUrlParams{Size: 1000, Filter: text("page14"), IgnoreCase: &yes}, 11},
		} {
			l := list[pbItem](c, "ListURLs", x.r)
			assert.True(t, len(l) == x.want, "%v: %d, want %d", x.r, len(l), x.want)
			if x.r.GetStart() > 0 || x.r.GetSize() < 1000 {
				continue
			}
			r := &urlfrontierpb.CountUrlParams{Key: x.r.GetKey(), CrawlID: x.r.GetCrawlID(), Filter: x.r.Filter,
				IgnoreCase: x.r.IgnoreCase}
			if n := do[pbLong](c, "CountURLs", r); int(n.GetValue()) != x.want {
				t.Errorf("%v: %d, want %d", r, n.GetValue(), x.want)
			}
		}
		seen := make(map[string]bool)
		for start := uint32(0); start < 151; start += 50 {
			for _, i := range list[pbItem](c, "ListURLs", &urlfrontierpb.ListUrlParams{Start: start, Size: 50}) {
				seen[i.GetKnown().GetInfo().GetUrl()] = true
			}
		}
		assert.True(t, len(seen) == 151, "%d URLs in pages", len(seen))
	},
	"lists of queues": func(t *testing.T, c *client) {
		var items []*pbItem
		for n := range 120 {
			items = append(items, discovered(info(number("http://host", n)+".test/")))
		}
		c.put(append(items, known(info("http://done.test/"), 0), discovered(info("http://blocked.test/")))...)
		do[pbEmpty](c, "BlockQueueUntil", &urlfrontierpb.BlockQueueParams{Key: "blocked.test",
			Time: uint64(time.Now().Add(time.Hour).Unix())})
		for _, x := range []struct {
			r    *urlfrontierpb.Pagination
			want int
		}{
			{&urlfrontierpb.Pagination{}, 100}, {&urlfrontierpb.Pagination{Size: 1000}, 120},
			{&urlfrontierpb.Pagination{Size: 1000, IncludeInactive: true}, 122},
			{&urlfrontierpb.Pagination{Size: 1000, Start: 110}, 10},
			{&urlfrontierpb.Pagination{Size: 10, Start: 10}, 10},
			{&urlfrontierpb.Pagination{CrawlID: "OTHER"}, 0},
		} {
			l := do[urlfrontierpb.QueueList](c, "ListQueues", x.r)
			if len(l.GetValues()) != x.want || l.GetStart() != x.r.GetStart() || l.GetSize() != uint32(x.want) ||
				l.GetTotal() != 0 {
				t.Errorf("%v: %d, %d, %d", x.r, len(l.GetValues()), l.GetStart(), l.GetSize())
			}
		}
		s := do[pbStats](c, "GetStats", &pbQueue{})
		assert.True(t, s.GetSize() == 121 && s.GetNumberOfQueues() == 122 && s.GetCounts()["completed"] == 1, "%v", s)
	},
	"blocks": func(t *testing.T, c *client) {
		c.put(discovered(info("http://one.test/")))
		block := func(key string, at int64) {
			do[pbEmpty](c, "BlockQueueUntil", &urlfrontierpb.BlockQueueParams{Key: key, Time: uint64(at)})
		}
		block("unknown.test", 5)
		block("one.test", time.Now().Add(time.Hour).Unix())
		urls := c.get(&urlfrontierpb.GetParams{})
		assert.True(t, len(urls) == 0, "blocked, and handed out: %q", urls)
		block("one.test", 0)
		if urls := c.get(&urlfrontierpb.GetParams{}); len(urls) != 1 {
			t.Errorf("%q", urls)
		}
	},
	"delays": func(t *testing.T, c *client) {
		c.put(discovered(info("http://one.test/1")), discovered(info("http://one.test/2")))
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{Key: "unknown.test", DelayRequestable: 5})
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{Key: "one.test", DelayRequestable: 3600})
		urls := c.get(&urlfrontierpb.GetParams{MaxUrlsPerQueue: 1})
		must.True(t, len(urls) == 1, "%q", urls)
		c.put(known(info(urls[0]), 0))
		if urls := c.get(&urlfrontierpb.GetParams{MaxUrlsPerQueue: 1}); len(urls) != 0 {
			t.Errorf("within the delay: %q", urls)
		}
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{Key: "one.test"})
		if urls := c.get(&urlfrontierpb.GetParams{MaxUrlsPerQueue: 1}); len(urls) != 1 {
			t.Errorf("after the delay: %q", urls)
		}
	},
	"limits": func(t *testing.T, c *client) {
		_, err := try[pbEmpty](c, "SetCrawlLimit", &urlfrontierpb.CrawlLimitParams{Key: "one.test", Limit: 1})
		assert.True(t, status.Code(err) == codes.Unknown, "an unknown queue: %v", err)
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
		c.put(discovered(info("http://one.test/")), known(info("http://one.test/done"), 0))
		do[pbEmpty](c, "SetCrawlLimit", &urlfrontierpb.CrawlLimitParams{Key: "one.test", Limit: 1})
		urls := c.get(&urlfrontierpb.GetParams{})
		assert.True(t, len(urls) == 0, "at the limit: %q", urls)
		do[pbEmpty](c, "SetCrawlLimit", &urlfrontierpb.CrawlLimitParams{Key: "one.test", Limit: 2})
		if urls := c.get(&urlfrontierpb.GetParams{}); len(urls) != 1 {
			t.Errorf("%q", urls)
		}
	},
	"an inactive frontier takes, and gives nothing": func(t *testing.T, c *client) {
		active := func() bool { return do[urlfrontierpb.Boolean](c, "GetActive", &urlfrontierpb.Local{}).GetState() }
		c.put(discovered(info("http://one.test/")))
		do[pbEmpty](c, "SetActive", &urlfrontierpb.Active{State: false})
		assert.True(t, !active(), "it is active")
		acks := c.put(discovered(&urlfrontierpb.URLInfo{Url: "http://two.test/", CrawlID: "NEW"}))
		assert.True(t, acks[0].GetStatus() == 0, "%v", acks)
		urls := c.get(&urlfrontierpb.GetParams{})
		assert.True(t, len(urls) == 0, "%q", urls)
		do[pbEmpty](c, "SetActive", &urlfrontierpb.Active{State: true})
		if urls := c.get(&urlfrontierpb.GetParams{}); len(urls) != 2 || !active() {
			t.Errorf("%q", urls)
		}
	},
	"one GetURLs has the URLs of all queues": func(t *testing.T, c *client) {
		var items []*pbItem
		for n := range 300 {
			items = append(items, discovered(info(number("http://host", n)+".test/")))
		}
		c.put(items...)
		urls := c.get(&urlfrontierpb.GetParams{})
		assert.True(t, len(urls) == 300, "%d URLs", len(urls))
	},
	"a put shows at once in a queue that waits": func(t *testing.T, c *client) {
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
		hour := time.Now().Unix() + 3600
		for host, put := range map[string]*pbItem{
			"one.test": discovered(info("http://one.test/")), "two.test": known(info("http://two.test/"), hour-7200),
		} {
			c.put(known(info("http://"+host+"/later"), hour))
			urls := c.get(ofQueue(host, 10, 600))
			assert.True(t, len(urls) == 0, "%q", urls)
			c.put(put)
			if urls := c.get(ofQueue(host, 10, 600)); !slices.Equal(urls, []string{"http://" + host + "/"}) {
				t.Errorf("%s: %q", host, urls)
			}
		}
	},
	"a put shows at once while others are put": func(t *testing.T, c *client) {
		do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
		c.put(discovered(info("http://one.test/")))
		var others sync.WaitGroup
		defer others.Wait()
		enough := make(chan struct{})
		defer close(enough)
		others.Go(func() {
			stream := c.open(t.Context(), "PutURLs")
			for n := 0; ; n++ {
				select {
				case <-enough:
					_ = stream.CloseSend()
					return
				default:
				}
				later := known(info(number("http://one.test/other", n)), time.Now().Unix()+3600)
				if errors.Join(stream.SendMsg(later), stream.RecvMsg(new(urlfrontierpb.AckMessage))) != nil {
					return
				}
			}
		})
		for n := range 50 {
			u := number("http://one.test/", n)
			c.put(known(info(u), time.Now().Unix()-1000))
			urls := c.get(ofQueue("one.test", 1000, 600))
			assert.True(t, slices.Contains(urls, u), "%d: %q", n, urls)
		}
	},
	"purges": func(t *testing.T, c *client) {
		c.put(discovered(info("http://one.test/")), discovered(info("http://one.test/2")))
		if n := do[pbLong](c, "PurgeURLs", &urlfrontierpb.PurgeUrlParams{Days: 1}); n.GetValue() != 0 {
			t.Errorf("%d of today purged", n.GetValue())
		}
		if n := do[pbLong](c, "CountURLs", &urlfrontierpb.CountUrlParams{}); n.GetValue() != 2 {
			t.Errorf("%d left", n.GetValue())
		}
	},
	"keys that are no hosts": checkKeys,
	"batches": func(t *testing.T, c *client) {
		const ok, skipped = urlfrontierpb.AckMessage_OK, urlfrontierpb.AckMessage_SKIPPED
		acks := exchange[urlfrontierpb.BatchAck](c, "PutDiscovered", []*urlfrontierpb.DiscoveredBatch{
			{ID: "a",
				Items: []*urlfrontierpb.URLInfo{info("http://one.test/1"), info("nonsense"), info("http://one.test/1"),
					keyed("http://one.test/2", "two.test"), info("http://one.test/3"), nil}},
			{ID: "empty"},
			{ID: "b", Items: []*urlfrontierpb.URLInfo{info("http://one.test/3"), info("http://one.test/4")}},
		})
		want := []*urlfrontierpb.BatchAck{
			{ID: "a", Statuses: []urlfrontierpb.AckMessage_Status{ok, skipped, skipped, ok, ok, skipped}},
			{ID: "empty"}, {ID: "b", Statuses: []urlfrontierpb.AckMessage_Status{skipped, ok}},
		}
		if !slices.EqualFunc(acks, want, func(a, b *urlfrontierpb.BatchAck) bool { return proto.Equal(a, b) }) {
			t.Errorf("%v", acks)
		}
	},
}

// TestConformance holds the assertions against crawls in memory.
func TestConformance(t *testing.T) {
	for name, check := range conformance {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{}, newFakeCrawls())
			check(t, dial(t, s.Address()))
		})
	}
}

// TestConformanceOf holds the assertions against the service at the address URLFRONTIER, such as one of
// the reference implementation. It deletes the crawls there.
func TestConformanceOf(t *testing.T) {
	address := os.Getenv("URLFRONTIER")
	if address == "" {
		t.Skip("URLFRONTIER names no service")
	}
	c := dial(t, address)
	for name, check := range conformance {
		t.Run(name, func(t *testing.T) {
			c := &client{t, c.conn}
			c.deleteAll()
			check(t, c)
		})
	}
}

// deleteAll deletes all crawls.
func (c *client) deleteAll() {
	c.t.Helper()
	for _, id := range do[pbList](c, "ListCrawls", &urlfrontierpb.Local{}).GetValues() {
		do[pbLong](c, "DeleteCrawl", &pbCrawl{Value: id})
	}
}

// keyed returns what a client says of a URL with a key.
func keyed(url, key string) *urlfrontierpb.URLInfo { return &urlfrontierpb.URLInfo{Url: url, Key: key} }

// checkKeys puts URLs with keys that are domains, addresses and any text, as StormCrawler does with byDomain and byIP:
// each is acknowledged, handed out with its key, and belongs to its queue in all RPCs.
func checkKeys(t *testing.T, c *client) {
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
	const ok, domain, any = urlfrontierpb.AckMessage_OK, "one.test", "_DEFAULT_ / ?"
	later := time.Now().Unix() + 3600
	keys := map[string]string{
		"http://www.one.test/1": domain, "http://one.test/2": domain, "http://blog.one.test/3": domain,
		"http://two.test/4": "192.0.2.7", "http://three.test/5": any, "http://four.test/6": "four.test",
	}
	batch := &urlfrontierpb.DiscoveredBatch{ID: "batch"}
	for u, key := range keys {
		batch.Items = append(batch.Items, keyed(u, key))
	}
	for _, ack := range exchange[urlfrontierpb.BatchAck](c, "PutDiscovered", []*urlfrontierpb.DiscoveredBatch{batch}) {
		if len(ack.GetStatuses()) != len(keys) || slices.ContainsFunc(ack.GetStatuses(),
			func(s urlfrontierpb.AckMessage_Status) bool { return s != ok }) {
			t.Errorf("%v", ack)
		}
	}
	more := []*urlfrontierpb.URLItem{
		known(keyed("http://www.one.test/7", domain), later), known(keyed("http://five.test/8", any), 0),
	}
	for _, ack := range c.put(more...) {
		assert.Equal(t, ack.GetStatus(), ok, ack)
	}
	l := do[urlfrontierpb.QueueList](c, "ListQueues", &urlfrontierpb.Pagination{Size: 10}).GetValues()
	if slices.Sort(l); !slices.Equal(l, []string{"192.0.2.7", any, "four.test", domain}) {
		t.Errorf("the queues are %q", l)
	}
	for key, want := range map[string][2]uint64{domain: {4, 0}, any: {1, 1}, "192.0.2.7": {1, 0}, "none": {}} {
		s := do[pbStats](c, "GetStats", &pbQueue{Key: key})
		n := do[pbLong](c, "CountURLs", &urlfrontierpb.CountUrlParams{Key: key}).GetValue()
		urls := list[pbItem](c, "ListURLs", &urlfrontierpb.ListUrlParams{Key: key, Size: 10})
		counted := [2]uint64{s.GetSize(), s.GetCounts()["completed"]}
		assert.True(t, counted == want && n == want[0]+want[1] && len(urls) == int(n),
			"%q: %v, %d counted, %d listed, want %v", key, s, n, len(urls), want)
		for _, u := range urls {
			assert.Equal(t, u.GetKnown().GetInfo().GetKey(), key, u)
		}
	}
	page := &urlfrontierpb.ListUrlParams{Key: domain, Start: 1, Size: 2}
	assert.Equal(t, len(list[pbItem](c, "ListURLs", page)), 2, "URLs in a page of 2")
	s := do[pbItem](c, "GetURLStatus", &pbStatus{Url: "http://three.test/5", Key: any})
	assert.Equal(t, s.GetKnown().GetInfo().GetKey(), any, s)
	checkQueueRPCs(t, c, keys)
}

// checkQueueRPCs blocks, hands out and deletes by keys that are no hosts.
func checkQueueRPCs(t *testing.T, c *client, keys map[string]string) {
	const domain, any = "one.test", "_DEFAULT_ / ?"
	block := func(until int64) {
		do[pbEmpty](c, "BlockQueueUntil", &urlfrontierpb.BlockQueueParams{Key: domain, Time: uint64(until)})
	}
	block(time.Now().Unix() + 3600)
	assert.Equal(t, len(c.get(ofQueue(domain, 10, 600))), 0, "blocked, and handed out")
	block(0)
	limit := func(n uint32) {
		do[pbEmpty](c, "SetCrawlLimit", &urlfrontierpb.CrawlLimitParams{Key: any, Limit: n})
	}
	limit(1)
	urls := c.get(ofQueue(any, 10, 600))
	assert.True(t, !slices.Contains(urls, "http://five.test/8"), "%q", urls)
	limit(0)
	got := make(map[string]string)
	testkit.Until(t, "the condition", func() bool { // a host that is not in memory yet comes with the next ones
		for _, r := range []*urlfrontierpb.GetParams{ofQueue(domain, 10, 600), {MaxQueues: 10, DelayRequestable: 600}} {
			for _, i := range list[urlfrontierpb.URLInfo](c, "GetURLs", r) {
				if got[i.GetUrl()] = i.GetKey(); r.GetKey() != "" && i.GetKey() != r.GetKey() {
					t.Errorf("%v of the queue %s", i, r.GetKey())
				}
			}
		}
		return len(got) >= len(keys)-1
	})
	got["http://three.test/5"] = any // it came before, or now
	assert.True(t, maps.Equal(got, keys), "handed out %q, want %q", got, keys)
	s := do[pbStats](c, "GetStats", &pbQueue{Key: domain})
	assert.True(t, s.GetInProcess() == 3 && s.GetNumberOfQueues() == 1, "%v", s)
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{Key: domain, DelayRequestable: 3600})
	for u := range keys {
		c.put(known(info(u), 1))
	}
	assert.Equal(t, len(c.get(ofQueue(domain, 10, 600))), 0, "within the delay")
	assert.Equal(t, do[pbLong](c, "PurgeURLs", &urlfrontierpb.PurgeUrlParams{Key: domain, Days: 1}).GetValue(), 0,
		"purged")
	assert.Equal(t, do[pbLong](c, "DeleteQueue", &pbQueue{Key: domain}).GetValue(), 4, "deleted")
	assert.Equal(t, do[pbLong](c, "CountURLs", &urlfrontierpb.CountUrlParams{}).GetValue(), 4, "left")
	long := strings.Repeat("ä", maxKey+1)
	acks := c.put(discovered(keyed("http://six.test/", long)), discovered(keyed("http://six.test/", long[2:])))
	assert.True(t, acks[0].GetStatus() == urlfrontierpb.AckMessage_FAIL &&
		acks[1].GetStatus() == urlfrontierpb.AckMessage_OK, "a key of 256 and one of 255 characters: %v", acks)
	_, err := try[pbStats](c, "GetStats", &pbQueue{Key: long})
	assert.True(t, status.Code(err) == codes.InvalidArgument, "a key of 256 characters: %v", err)
}
