package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

var _ crawl.Journal = (*Shard)(nil)

// childDir is the environment variable that makes the test binary a crawler with a journal: a process
// of its own that can be killed.
const childDir = "AMBLE_JOURNAL_CHILD"

// childConfig is what a child crawls, in a file of its directory.
type childConfig struct {
	Seeds    []string
	Resolver string
	Delay    time.Duration
	NATS     string
	Shard    int
	Stay     bool // it does not end when it has nothing to do
}

func (c *childConfig) options(dir string) crawl.Options {
	o := crawl.DefaultOptions()
	o.MinFree, o.DataDir, o.Archive.Dir = 0, filepath.Join(dir, "data"), filepath.Join(dir, "output")
	o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = "amble-test", true, c.Resolver
	o.GiveUpAfter, o.Frontier.Politeness.Delay, o.ExitWhenDone = 20*time.Second, c.Delay, !c.Stay
	return o
}

func (c *childConfig) seeds() (seeds []crawl.Seed, err error) {
	for _, text := range c.Seeds {
		u, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, crawl.Seed{URL: u, Source: testkit.ChildFile})
	}
	return seeds, nil
}

// crawlAsChild is the child: it claims the shard, makes its database as far as that is missing, and
// crawls until that is done.
func crawlAsChild(dir string, c childConfig) error {
	nc, err := nats.Connect(c.NATS, ConnectOptions()...)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx := context.Background()
	s, err := Open(ctx, nc, testOptions())
	if err != nil {
		return err
	}
	ack, err := s.js.Publish(ctx, s.EpochSubject(c.Shard), []byte("claim"))
	if err != nil {
		return err
	}
	shard := s.Shard(ctx, c.Shard, ack.Sequence)
	o := c.options(dir)
	o.Journal = shard
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	e, err := crawl.Open(o, log)
	if errors.Is(err, storage.ErrGap) {
		if _, _, err = shard.Restore(ctx, o.DataDir); err == nil {
			e, err = crawl.Open(o, log)
		}
	}
	if err != nil {
		return err
	}
	seeds, err := c.seeds()
	if err == nil {
		_, err = e.Run(ctx, seeds)
	}
	return errors.Join(err, e.Close())
}

func startChild(t *testing.T, dir string) (child *exec.Cmd, done <-chan error) {
	t.Helper()
	return testkit.StartChild(t, childDir, dir)
}

// rows are all rows of a database that has followed the log to its end. The first record has its key: as long as there
// is none, the key is left out.
func rows(t *testing.T, shard *Shard, dir string) string {
	t.Helper()
	s := openStore(t, dir)
	defer s.Close()
	must.Do(t, shard.Replay(position(t, s), into(s)))
	assert.NoError(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
	var b strings.Builder
	must.Do(t, s.WriteRows(&b))
	if position(t, s) != (storage.LogPosition{}) {
		return b.String()
	}
	return regexp.MustCompile(`(?m)^meta 6b6579 .*\n`).ReplaceAllString(b.String(), "")
}

// sites are hosts whose pages link to the pages behind them, so that there is something to discover
// until the end.
func sites(hosts, pages int) (all []testweb.Site) {
	for i := range hosts {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n")}
		links := []string{"/no/1"}
		for j := range pages {
			links = append(links, fmt.Sprintf("/pages/number-%d.html", j))
		}
		for j := range pages {
			routes[links[j+1]] = testweb.Page(links[j+1], slices.Concat(links[j+1:min(j+12, len(links))], links[:1])...)
		}
		routes["/"] = testweb.Page("root", links[:2]...)
		all = append(all, testweb.Site{Host: fmt.Sprintf("h%d.kill.test", i), Handler: routes})
	}
	return all
}

// TestKill kills a crawler with a journal at random moments. Each time, the database that the log
// makes is that of the data directory, row by row; then the crawl goes on with one of the two.
func TestKill(t *testing.T) {
	kill{hosts: 3, pages: 120, kills: 4, life: 600 * time.Millisecond}.run(t)
}

type kill struct {
	hosts, pages, kills int
	life                time.Duration // at most, of a process that is killed
}

func (k kill) run(t *testing.T) {
	web := testweb.Serve(t, testweb.Config{Sites: sites(k.hosts, k.pages)})
	back := startServer(t, t.TempDir(), nil)
	s := openStreams(t, connect(t, back.ClientURL()), testOptions())
	n := int(shardOf(s, "h0.kill.test"))
	const delay = 8 * time.Millisecond
	dir := t.TempDir()
	c := childConfig{Resolver: web.ResolverAddr(), Delay: delay, NATS: back.ClientURL(), Shard: n}
	var hosts []string
	for i := range k.hosts {
		if host := fmt.Sprintf("h%d.kill.test", i); shardOf(s, host) == n {
			hosts = append(hosts, host)
			c.Seeds = append(c.Seeds, web.URL(host, "/"))
		}
	}
	testkit.PrepareChild(t, dir, c)
	data := filepath.Join(dir, "data")
	none := s.claim(t, n)
	one, other := rows(t, none, t.TempDir()), rows(t, none, t.TempDir())
	must.True(t, one == other, "before the first record, a kill leaves two databases that differ")
	final := make(map[string]bool) // URLs that were committed before a kill
	for kills := 0; ; kills++ {
		before := len(web.Requests())
		child, done := startChild(t, dir)
		life := patience
		if kills < k.kills {
			life = k.life/4 + rand.N(k.life*3/4)
		}
		var err error
		over := false
		select {
		case err = <-done:
			over = true
		case <-time.After(life):
			must.Do(t, child.Process.Kill())
			<-done
		}
		must.True(t, !over || err == nil, "the crawler failed: %v", err)
		must.True(t, over || kills < k.kills, "the crawl does not end")
		settle(t, web)
		for _, q := range web.Requests()[before:] {
			assert.True(t, !final[q.Host+q.Path], "%s%s was committed before the kill and requested after it", q.Host,
				q.Path)
		}
		rebuilt := t.TempDir()
		shard := s.claim(t, n)
		got := rows(t, shard, rebuilt)
		if _, err := os.Stat(filepath.Join(data, storage.FileName)); err == nil {
			want := rows(t, shard, data)
			must.True(t, got == want, "kill %d: the log makes\n%s\nthe data directory has\n%s", kills, got, want)
		}
		fetched(t, rebuilt, final)
		if over {
			t.Logf("%d kills, %d requests, %d rows", kills, len(web.Requests()), strings.Count(got, "\n"))
			break
		}
		if kills%2 == 0 { // the disk of the node is gone
			must.Do(t, os.RemoveAll(data))
		}
	}
	log := web.Requests()
	for _, host := range hosts {
		for _, g := range log.Host(host).ShortGaps(delay) {
			assert.True(t, g.Before.Aborted, "%s: %v between %s and %s", host, g.Length, g.Before.Path, g.After.Path)
		}
		for i := range k.pages {
			path := fmt.Sprintf("/pages/number-%d.html", i)
			assert.True(t, final[host+path], "%s%s has no outcome", host, path)
		}
	}
}

func shardOf(s *Streams, host string) int {
	for n := range s.o.Shards {
		if (&Shard{Streams: s, n: n}).Owns(host) {
			return n
		}
	}
	return -1
}

func settle(t *testing.T, web *testweb.Web) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Do(t, web.Settle(ctx))
}

// fetched adds the pages of a database that are fetched.
func fetched(t *testing.T, dir string, to map[string]bool) {
	t.Helper()
	s := openStore(t, dir)
	defer s.Close()
	must.Do(t, s.Hosts(func(h *storage.Host) error {
		_, err := s.URLs(h.ID, 0, 1<<30, func(head storage.Head) {
			if head.Last.State == storage.Fetched {
				to[h.Name+head.RequestURI] = true
			}
		})
		return err
	}))
}

// TestTwoShards: two engines, each with one shard, crawl what one crawls alone: each URL that one finds
// and the other owns arrives there, and no host is requested by both.
func TestTwoShards(t *testing.T) {
	web := testweb.Serve(t, testweb.Config{Sites: ring(6)})
	back := startServer(t, t.TempDir(), nil)
	o := testOptions()
	o.Shards = 2
	s := openStreams(t, connect(t, back.ClientURL()), o)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	shards := make(map[int]bool)
	ended := make(chan error, 2)
	var seeds []string
	for i := range 6 {
		shards[shardOf(s, fmt.Sprintf("ring%d.test", i))] = true
		seeds = append(seeds, web.URL(fmt.Sprintf("ring%d.test", i), "/none"))
	}
	must.True(t, len(shards) == 2, "all hosts are in one shard")
	seeds = append(seeds, web.URL("ring0.test", "/"))
	engines, journals, dirs := make([]*crawl.Engine, 2), make([]*Shard, 2), make([]string, 2)
	for n := range engines {
		c := childConfig{Resolver: web.ResolverAddr(), Delay: time.Millisecond, Stay: true, Seeds: seeds}
		options := c.options(t.TempDir())
		options.Fetch.UserAgent = fmt.Sprintf("amble-test-%d", n)
		journals[n] = s.claim(t, n)
		options.Journal, dirs[n] = journals[n], options.DataDir
		e := must.Get(crawl.Open(options, slog.New(slog.DiscardHandler)))(t)
		list := must.Get(c.seeds())(t)
		engines[n] = e
		go func() {
			_, err := e.Run(ctx, list)
			ended <- err
		}()
	}
	pages := func() int { return len(web.Requests().Pages().CountByPath()) }
	for deadline := time.Now().Add(patience); pages() < 6*10+6; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d pages were requested", pages())
		}
	}
	for n, e := range engines {
		must.Do(t, e.Snapshot(func(at storage.LogPosition, incoming uint64,
			backup func(func(int64) (io.Writer, error)) (int64, error)) error {
			return journals[n].WriteSnapshot(ctx, t.TempDir(), at, incoming, backup)
		}))
	}
	cancel()
	for range engines {
		assert.NoError(t, <-ended)
	}
	for _, e := range engines {
		must.Do(t, e.Close())
	}
	for n, dir := range dirs {
		taker, to := s.claim(t, n), t.TempDir()
		_, restored, err := taker.Restore(t.Context(), to)
		must.True(t, err == nil && restored, "restored %t, %v", restored, err)
		assert.Equal(t, rows(t, taker, to), rows(t, taker, dir), "the snapshot and the log make the data directory")
	}
	for path, n := range web.Requests().Pages().CountByPath() {
		assert.Equal(t, n, 1, path, "was requested times")
	}
}

// ring is hosts whose pages link to pages of the next host.
func ring(hosts int) (all []testweb.Site) {
	name := func(i int) string { return fmt.Sprintf("ring%d.test", i%hosts) }
	for i := range hosts {
		routes := testweb.Routes{"/robots.txt": testweb.Robots(""), "/none": testweb.Page("none")}
		for j := range 10 {
			path := fmt.Sprintf("/%d", j)
			if j == 0 {
				path = "/"
			}
			next := fmt.Sprintf("//%s/%d", name(i+1), j)
			if j == 0 {
				next = fmt.Sprintf("//%s/", name(i+1))
			}
			routes[path] = testweb.Page(path, next, fmt.Sprintf("//%s/%d", name(i+1), min(j+1, 9)))
		}
		all = append(all, testweb.Site{Host: name(i), Handler: routes})
	}
	return all
}
