package erase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/output/formats"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// zebra is the domain that the tests erase. Nothing else has the word in its name.
var zebra = weburl.Names{Name: "zebra.test", Below: true}

// zoo is a web in which every host says something about every other one.
func zoo(t testing.TB, hang chan string) *testweb.Web {
	t.Helper()
	hanging := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hang <- r.Host
		<-r.Context().Done()
	})
	hosts := []string{"a.test", "zebra.test", "www.zebra.test", "c.test", "xn--zbra-bpa.test"}
	web := testweb.Serve(t, testweb.Config{Sites: []testweb.Site{{Host: hosts[0]}, {Host: hosts[1]}, {Host: hosts[2]},
		{Host: hosts[3]}, {Host: hosts[4]}}})
	for _, host := range hosts {
		routes := testweb.Routes{
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private\n# of " + host + "\n"), "/hang": hanging,
		}
		links := []string{"/private/", "/missing"}
		for _, other := range hosts {
			links = append(links, web.URL(other, "/"))
		}
		for i := range 20 {
			path := fmt.Sprintf("/%d", i)
			links = append(links, path)
			routes[path] = testweb.Page(host+path, web.URL(hosts[i%len(hosts)], fmt.Sprintf("/from/%s", path)))
			routes["/from/"+path] = testweb.Page("found at another host", web.URL(hosts[(i+1)%len(hosts)], path))
		}
		routes["/"] = testweb.Page(host, links...)
		routes["/private/"] = testweb.Page("private")
		web.SetHandler(host, routes)
		switch host {
		case "a.test":
			routes["/robots.txt"] = testweb.Robots("User-agent: *\nDisallow: /private\nSitemap: " +
				web.URL("zebra.test",
					"/map.xml"))
		case "c.test":
			routes["/robots.txt"] = testweb.Redirect(302, web.URL("www.zebra.test", "/robots.txt"))
			routes["/0"] = testweb.Redirect(302, web.URL("zebra.test", "/redirected"))
		}
	}
	return web
}

// killedCrawl crawls the zoo until all pages are fetched but two, of two hosts, that hang; and kills
// the crawler while it waits for these. So the ledger names both, and no output file is complete.
func killedCrawl(t testing.TB) (dir string, web *testweb.Web) {
	t.Helper()
	hang := make(chan string, 10)
	web = zoo(t, hang)
	dir = t.TempDir()
	_, first := startChild(t, dir, childConfig{Resolver: web.ResolverAddr(), Seeds: []string{
		web.URL("a.test", "/"), web.URL("zebra.test", "/"), web.URL("www.zebra.test", "/"), web.URL("c.test", "/"),
		web.URL("xn--zbra-bpa.test", "/"),
	}})
	must.Do(t, <-first)
	child, done := startChild(t, dir, childConfig{Resolver: web.ResolverAddr(), Seeds: []string{
		web.URL("a.test", "/hang"), web.URL("zebra.test", "/hang"), web.URL("a.test", "/again"), web.URL("zebra.test",
			"/again"),
	}})
	<-hang
	<-hang
	must.Do(t, child.Process.Kill())
	<-done
	crashes := filepath.Join(dir, "data", crawl.CrashDir)
	must.Do(t, os.MkdirAll(crashes, 0o750))
	for name, text := range map[string]string{"1.crash": "url: http://zebra.test/1\n",
		"2.crash": "url: http://a.test/1\n"} {
		must.Do(t, os.WriteFile(filepath.Join(crashes, name), []byte(text), 0o640))
	}
	for _, name := range []string{"amble.db.compact", "amble.db.erase", "amble.db.upgrade", "amble.db.snapshot",
		"starts.log.new"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "data", name), []byte("zebra.test"), 0o640))
	}
	return dir, web
}

// contents describes all that is kept, a line for each thing, as it should be without names if these
// are given.
func contents(t testing.TB, dir string, without weburl.Names) (lines []string) {
	t.Helper()
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	s := must.Get(storage.Open(filepath.Join(dir, "data"), storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	must.Do(t, s.Hosts(func(h *storage.Host) error {
		if strings.HasPrefix(h.Name, "<erased-") || without.Has(h.Name) {
			return nil
		}
		add("host %d %s %v %d %d %x %v", h.ID, h.Name, h.Counts, h.Requests, h.Bytes, h.Politeness, h.Queues)
		for _, q := range h.Queues {
			record, err := s.Policy(q.Origin)
			if err != nil {
				return err
			}
			r, err := robots.DecodeRecord(record)
			if err == nil && !without.HasURL(r.FinalURL) && !without.In(r.Body) {
				add("robots %s %s %q", q.Origin, r.FinalURL, r.Body)
			}
		}
		_, err := s.URLs(h.ID, 0, 1<<30, func(u storage.Head) {
			via, _ := s.URL(u.ViaHost, u.ViaOrdinal)
			if without.Has(via.Host()) {
				via = weburl.URL{}
			}
			u.ViaHost, u.ViaOrdinal = 0, 0
			add("URL %s %+v via %s", h.Name, u, via)
		})
		return err
	}))
	seeds := must.Get(s.Seeds())(t)
	for _, u := range seeds {
		if !without.HasURL(u.URL) {
			add("seed %s", u.URL)
		}
	}
	must.Get(requestlog.Read(filepath.Join(dir, "data", requestlog.DirName), requestlog.Query{},
		func(q *requestlog.Request) error {
			if !without.Has(q.URL.Host()) {
				add("request %s %s %d %d %v %v", q.URL, q.Start, q.LedgerOffset, q.Status, q.Delay, q.Line)
			}
			return nil
		}))(t)
	return append(lines, records(t, dir, without)...)
}

// records describes what the output has.
func records(t testing.TB, dir string, without weburl.Names) (lines []string) {
	t.Helper()
	output := filepath.Join(dir, "output")
	files := must.Get(filepath.Glob(filepath.Join(output, "*.jsonl*")))(t)
	for _, path := range files {
		text := must.Get(os.ReadFile(path))(t)
		for line := range strings.Lines(string(text)) {
			_, url, _ := strings.Cut(line, `,"url":"`)
			_, from, isLink := strings.Cut(line, `,"from":"`)
			if isLink {
				url = from
			}
			url, _, _ = strings.Cut(url, `"`)
			if !without.HasURL(url) && filepath.Base(path) != TombstoneFile {
				name := strings.TrimSuffix(filepath.Base(path), archive.SuffixUnmarked)
				lines = append(lines, strings.TrimSuffix(name, archive.SuffixOpen)+" "+line)
			}
		}
	}
	files = must.Get(filepath.Glob(filepath.Join(output, "*.warc.gz*")))(t)
	for _, path := range files {
		content := must.Get(os.ReadFile(path))(t)
		for r := warc.NewReader(bytes.NewReader(content)); ; {
			rec, err := r.Next()
			if err == nil {
				err = r.Skip()
			}
			if err == io.EOF {
				break
			}
			must.Do(t, err)
			if !without.HasURL(rec.Header.Get(warc.FieldTargetURI)) {
				lines = append(lines, fmt.Sprintf("%s %x", filepath.Base(path), content[rec.Offset:r.Offset()]))
			}
		}
	}
	return lines
}

// filesNaming returns the files that name a zebra in any form, as they are.
func filesNaming(t testing.TB, dir string) (files []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(bytes.ToLower(text), []byte("zebra")) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func eraseOptions(dir string, web *testweb.Web) Options {
	return Options{Crawl: options(dir, web.ResolverAddr()), Names: zebra, Output: true, Now: time.Now,
		Files: outputFiles}
}

// finish completes the output, as an erasure does first: its end that no commit knows of is cut.
func finish(t testing.TB, dir string, web *testweb.Web) {
	t.Helper()
	s, err := storage.Open(filepath.Join(dir, "data"), storage.Options{})
	if err == nil {
		err = errors.Join(finishOutput(options(dir, web.ResolverAddr()), s), s.Close())
	}
	must.Do(t, err)
}

func copyDir(t testing.TB, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	must.Do(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// checkWhole checks the database and the output with the repository's own means.
func checkWhole(t testing.TB, dir string) {
	t.Helper()
	s := must.Get(storage.Open(filepath.Join(dir, "data"), storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	assert.NoError(t, s.Check(context.Background(), func(f storage.Finding) { t.Errorf("database: %s", f.Text) }))
	c := must.Get(warcfiles.OpenCollection(filepath.Join(dir, "output"), formats.All()))(t)
	v, err := c.Verify(context.Background(), func(p warcfiles.Problem) { t.Errorf("output: %s", p) })
	assert.True(t, err == nil && v.Records != 0, "%+v: %v", v, err)
}

// TestErase erases a domain from what a killed crawl left, and compares what is left with what was
// there. The next run goes on with it.
func TestErase(t *testing.T) {
	dir, web := killedCrawl(t)
	finish(t, dir, web)
	want := contents(t, dir, zebra)
	o := eraseOptions(dir, web)
	o.DryRun = true
	before := filesNaming(t, dir)
	counted := must.Get(Run(context.Background(), o))(t)
	assert.True(t, slices.Equal(filesNaming(t, dir), before) && !counted.IsEmpty(),
		"a dry run has changed something, or counts nothing: %+v", counted)
	o.DryRun = false
	r := must.Get(Run(context.Background(), o))(t)
	compareReports(t, r, counted)
	assert.True(t, len(r.Mentions) == 0 && len(r.Unreadable) == 0, "it is still named: %v, %v", r.Mentions,
		r.Unreadable)
	assert.Equal(t, len(filesNaming(t, filepath.Join(dir, "data"))), 0, "it is still named in")
	for _, path := range filesNaming(t, filepath.Join(dir,
		"output")) { // the records themselves have what others say of it
		assert.True(t, !strings.Contains(path, ".cdxj") && filepath.Base(path) != TombstoneFile,
			"it is still named in %s", path)
	}
	assert.Slice(t, contents(t, dir, weburl.Names{}), want, "what is left differs")
	checkWhole(t, dir)
	assert.Equal(t, tombstoned(t, dir), r.Records(), "tombstones of records were erased")
	left := filepath.Join(dir, "data", storage.SnapshotFile)
	must.Do(t, os.WriteFile(left, []byte("zebra.test"), 0o640))
	again, err := Run(context.Background(), o)
	assert.True(t, err == nil && again.IsEmpty(), "a second erasure finds %+v: %v", again, err)
	assert.Equal(t, len(filesNaming(t, filepath.Join(dir, "data"))), 0,
		"it is still named in which the database does not know")
	e := must.Get(crawl.Open(o.Crawl, slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	must.Get(e.Run(ctx, nil))(t)
	must.Do(t, e.Close())
}

// TestEraseWithoutDatabase: of a shard that another node crawls there is no database, and a node that was killed has
// left the files that it wrote. They are set aside, and only the records of the hosts go.
func TestEraseWithoutDatabase(t *testing.T) {
	dir, web := killedCrawl(t)
	finish(t, dir, web)
	files, err := filepath.Glob(filepath.Join(dir, "output", "*.jsonl"))
	must.True(t, err == nil && len(files) != 0, "%q: %v", files, err)
	want := records(t, dir, zebra)
	for _, path := range files {
		err = errors.Join(err, os.Rename(path, path+archive.SuffixOpen))
	}
	for _, name := range []string{storage.FileName, starts.FileName} {
		err = errors.Join(err, os.Remove(filepath.Join(dir, "data", name)))
	}
	must.Do(t, err)
	o := eraseOptions(dir, web)
	o.NoDatabase = true
	r, err := Run(context.Background(), o)
	must.True(t, err == nil && len(r.Output) != 0, "%+v: %v", r, err)
	if open, err := filepath.Glob(filepath.Join(dir, "output", "*"+archive.SuffixOpen)); err != nil || len(open) > 0 {
		t.Errorf("these are open: %q, %v", open, err)
	}
	assert.Slice(t, records(t, dir, weburl.Names{}), want, "what is left differs")
}

func tombstoned(t testing.TB, dir string) (records int) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(dir, "output", TombstoneFile)))(t)
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, `"records":{`)
		rest, _, _ = strings.Cut(rest, "}")
		for part := range strings.SplitSeq(rest, ",") {
			n := 0
			_, count, _ := strings.Cut(part, ":")
			fmt.Sscan(count, &n)
			records += n
		}
	}
	return records
}

func compareReports(t testing.TB, got, want *Report) {
	t.Helper()
	assert.True(t, got.Database == want.Database && got.Ledger == want.Ledger && got.Crashes == want.Crashes &&
		maps.Equal(got.Requests, want.Requests) && got.Records() == want.Records(), "erased %+v\nwant %+v", got, want)
}

func difference(got, want []string) string {
	var b strings.Builder
	for _, l := range got {
		if !slices.Contains(want, l) {
			fmt.Fprintln(&b, "+", l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			fmt.Fprintln(&b, "-", l)
		}
	}
	return b.String()
}
