package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// sizedCrawl is a crawl of a mesh whose store was large before it began, with its API: hosts of ten
// URLs, of every fourth five fetched; a failed URL of the last host; and one host with as many URLs
// as there are hosts, half of them fetched.
type sizedCrawl struct {
	mesh   testweb.Mesh
	web    *testweb.Web
	engine *crawl.Engine
	server *Server
	client http.Client
	opened time.Duration // from the start of the run until it was there
}

// bigHost is the host with the most URLs.
const bigHost = "big.test"

// storePort is the port of the web where the store is kept for the next process.
const storePort = 18377

// startSized makes 100,000 URLs, or as many as AMBLE_BENCH_URLS says. BENCH_STORE names a directory
// in which the store is kept, and found by the next run.
func startSized(b *testing.B, delay time.Duration) *sizedCrawl {
	size := 100_000
	if n, err := strconv.Atoi(os.Getenv("AMBLE_BENCH_URLS")); err == nil {
		size = n
	}
	c := &sizedCrawl{mesh: testweb.Mesh{Hosts: size / 10, Pages: 10, Links: 6, PageBytes: 2 << 10, Addresses: 100}}
	config := testweb.Config{CountOnly: true}
	dir := b.TempDir()
	if kept := os.Getenv("BENCH_STORE"); kept != "" {
		dir, config.Port = kept, storePort
	}
	var err error
	c.web, err = testweb.NewMesh(c.mesh, config)
	must.True(b, err == nil, "%v", err)
	o := crawl.DefaultOptions()
	o.DataDir, o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = dir, "amble-test", true, c.web.ResolverAddr()
	o.Archive.Dir, o.Archive.Formats = b.TempDir(), []string{archive.FormatNone}
	o.Mode, o.ExitWhenDone, o.Frontier.Politeness.Delay, o.Fetch.MaxIdleConns = frontier.ModeAny, false, delay, 1000
	recrawl := recrawl.DefaultOptions()
	o.Recrawl = &recrawl
	if _, err := os.Stat(filepath.Join(dir, storage.FileName)); err != nil {
		c.fill(b, dir)
	}
	c.engine, err = crawl.Open(o, slog.New(slog.DiscardHandler))
	must.True(b, err == nil, "%v", err)
	c.server, err = Start(Options{Listen: "127.0.0.1:0", DataDir: dir, Metrics: NewMetrics("test"), Now: time.Now},
		c.engine)
	must.Do(b, err)
	c.run(b)
	return c
}

// run runs the crawl until the benchmark ends.
func (c *sizedCrawl) run(b *testing.B) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	begun := time.Now()
	go func() {
		_, err := c.engine.Run(ctx, nil)
		ended <- err
	}()
	b.Cleanup(func() {
		stop()
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		assert.NoError(b, errors.Join(<-ended, c.server.Close(closing), c.engine.Close(), c.web.Close()))
	})
	for c.engine.Resume(ctx) != nil { // it is not there yet; and an earlier process may have left it paused
		time.Sleep(time.Millisecond)
	}
	c.opened = time.Since(begun)
}

// get sends a request, reads the whole response, and returns the time to its first byte.
func (c *sizedCrawl) get(ctx context.Context, path string) (time.Duration, []byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.server.Address()+path, nil)
	if err != nil {
		return 0, nil, err
	}
	begun := time.Now()
	response, err := c.client.Do(q)
	first := time.Since(begun)
	if err != nil {
		return first, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(path + ": " + response.Status + ": " + string(body))
	}
	return first, body, err
}

// fill makes the store.
func (c *sizedCrawl) fill(b *testing.B, dir string) {
	s := must.Get(storage.Open(dir, storage.Options{NoSync: true}))(b)
	var batch storage.Batch
	var id storage.HostID
	commit := func() {
		must.Get(s.Commit(&batch))(b)
		batch.Found, batch.Done = batch.Found[:0], batch.Done[:0]
	}
	// add makes one host of so many URLs and the outcomes of the first of them.
	add := func(root weburl.URL, path func(int) string, urls int, outcomes ...storage.Outcome) {
		id++
		now := time.Now()
		for i := range urls {
			u := root.Origin().URL(path(i))
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
			if i < len(outcomes) {
				batch.Done = append(batch.Done, storage.Done{Host: id, Ordinal: uint32(i), Outcome: outcomes[i]})
			}
			if len(batch.Found) >= 20_000 && urls > c.mesh.Pages {
				commit()
			}
		}
		if len(batch.Found) >= 20_000 {
			commit()
		}
	}
	now := time.Now()
	fetched := func(n int) []storage.Outcome {
		list := make([]storage.Outcome, n)
		for i := range list {
			list[i] = storage.Outcome{State: storage.Fetched, Status: 200, At: now,
				Due: now.Add(time.Duration(i+1) * time.Hour), Bytes: 2 << 10, Digest: uint64(i + 1)}
		}
		return list
	}
	some := fetched(5)
	for h := range c.mesh.Hosts {
		var outcomes []storage.Outcome
		switch {
		case h == c.mesh.Hosts-1:
			outcomes = []storage.Outcome{{State: storage.Failed, Status: 404, At: now}}
		case h%4 == 0:
			outcomes = some
		}
		add(mustParse(b, c.web.URL(c.mesh.Host(h), "/")), c.mesh.Path, c.mesh.Pages, outcomes...)
	}
	commit()
	add(mustParse(b, "http://"+bigHost+"/"), func(i int) string { return "/" + strconv.Itoa(i) }, c.mesh.Hosts,
		fetched(c.mesh.Hosts/2)...)
	commit()
	must.Do(b, s.Close())
}

func mustParse(b *testing.B, text string) weburl.URL {
	return must.Get(weburl.Parse(text))(b)
}

// BenchmarkAPI requests everything that the API has from a paused crawl, with the arguments that
// are hardest for it (see startSized). longest is that of all calls, the first after the start of
// the crawl among them; first-byte is the mean time to the first byte.
func BenchmarkAPI(b *testing.B) {
	c := startSized(b, time.Minute)
	ctx := context.Background()
	must.Do(b, c.engine.Pause(ctx))
	some := c.mesh.Host(c.mesh.Hosts / 2)
	root := c.web.URL(some, "/")
	var checks []string
	for i := range 100 {
		checks = append(checks, "url="+url.QueryEscape(c.web.URL(c.mesh.Host(i*c.mesh.Hosts/100), "/private/x")))
	}
	b.Logf("there after %v", c.opened)
	for _, path := range []string{
		"/api/v1/hosts?sort=waiting",
		"/api/v1/hosts?sort=waiting&limit=1000",
		"/api/v1/hosts?sort=finish&limit=1000",
		"/api/v1/hosts?sort=delay&limit=1000",
		"/api/v1/hosts?sort=next&limit=1000",
		"/api/v1/hosts?sort=found&limit=1000",
		fmt.Sprintf("/api/v1/hosts?sort=found&limit=1000&after=0.%d", c.mesh.Hosts-500),
		"/api/v1/hosts?state=busy",
		"/api/v1/hosts?state=trouble&sort=finish",
		"/api/v1/hosts?sort=name&limit=1000",
		"/api/v1/hosts?sort=name&limit=1000&after=" + some,
		"/api/v1/hosts?contains=nowhere",
		"/api/v1/hosts?under=mesh.test&state=trouble",
		"/api/v1/hosts/" + some,
		"/api/v1/hosts/" + bigHost,
		"/api/v1/urls?limit=1000",
		"/api/v1/urls?limit=1000&state=queued",
		"/api/v1/urls?limit=1000&state=failed",
		"/api/v1/urls?limit=1000&state=queued&reason=robots",
		"/api/v1/urls?limit=1000&state=excluded",
		fmt.Sprintf("/api/v1/urls?limit=1000&from=%d.0", c.mesh.Hosts/2),
		fmt.Sprintf("/api/v1/urls?limit=1000&from=%d.%d", c.mesh.Hosts+1, c.mesh.Hosts-1000),
		"/api/v1/urls?limit=1000&host=" + bigHost + "&state=fetched&reason=robots",
		"/api/v1/url?url=" + url.QueryEscape(root),
		"/api/v1/robots?origin=" + url.QueryEscape(strings.TrimSuffix(root, "/")),
		"/api/v1/robots/check?" + strings.Join(checks, "&"),
		"/api/v1/plan?hosts=20",
		"/api/v1/plan?hosts=1000",
		"/api/v1/status",
		"/api/v1/history?window=24h",
		"/api/v1/openapi.json",
		"/api/v1/export?limit=1000",
		"/api/v1/export?state=failed",
		"/api/v1/export/hosts?limit=1000",
		"/api/v1/export/hosts?state=trouble&limit=1",
		"/metrics",
		"/",
	} {
		name, _, _ := strings.Cut(path, "&url=")
		b.Run(fmt.Sprintf("hosts=%d%s", c.mesh.Hosts, strings.TrimPrefix(name, "/api/v1")), func(b *testing.B) {
			var longest, firsts time.Duration
			for b.Loop() {
				begun := time.Now()
				first, _, err := c.get(ctx, path)
				must.Do(b, err)
				longest, firsts = max(longest, time.Since(begun)), firsts+first
			}
			b.ReportMetric(longest.Seconds()*1000, "longest-ms")
			b.ReportMetric(firsts.Seconds()*1000/float64(b.N), "first-byte-ms")
		})
	}
}
