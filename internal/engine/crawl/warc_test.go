package crawl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/output/formats"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// allFormats are the forms of output, side by side.
var allFormats = []string{archive.FormatJSONL, warcfiles.Name, archive.FormatLinks, archive.FormatText}

// archived are the captures of an archive by URL, in the order of time.
func archived(t testing.TB, dir string) map[string][]warc.Entry {
	t.Helper()
	c := must.Get(warcfiles.OpenCollection(dir, formats.All()))(t)
	all := make(map[string][]warc.Entry)
	must.Do(t, c.Captures(context.Background(), "", func(e *warc.Entry) error {
		all[e.URL] = append(all[e.URL], *e)
		return nil
	}))
	return all
}

// checkArchive holds the WARC files against the store: nothing is wrong with them, each URL that
// was answered has exactly the record of that answer, and what was never answered, as far as the
// store knows, has none.
func checkArchive(t testing.TB, o Options) {
	t.Helper()
	c := must.Get(warcfiles.OpenCollection(o.Archive.Dir, formats.All()))(t)
	must.Get(c.Verify(context.Background(), func(p warcfiles.Problem) { t.Errorf("archive: %s", p) }))(t)
	captures := archived(t, o.Archive.Dir)
	for u, outcome := range stored(t, o.DataDir) {
		got := captures[u]
		delete(captures, u)
		final := slices.DeleteFunc(slices.Clone(got),
			func(e warc.Entry) bool { return e.Status != int(outcome.Status) })
		switch {
		case requested(outcome) && outcome.Status != 0 && len(final) != 1:
			t.Errorf("%s is %s with status %d, and there are %d records of that", u, outcome.State,
				outcome.Status, len(final))
		case outcome.State == storage.Queued && len(got) > 0:
			t.Errorf("%s is queued, and there are records of it: %+v", u, got)
		}
	}
	for u := range captures {
		assert.True(t, strings.HasSuffix(u, "/robots.txt"), "%s is in the archive and not in the store", u)
	}
}

// page reads the newest capture of a URL.
func page(t testing.TB, dir, url string) (head, body string, s *warcfiles.Stored) {
	t.Helper()
	c := must.Get(warcfiles.OpenCollection(dir, formats.All()))(t)
	e, err := c.Find(context.Background(), url, time.Time{})
	must.Do(t, err, url)
	s = must.Get(c.Open(context.Background(), e))(t)
	t.Cleanup(func() { s.Close() })
	r := io.MultiReader(bytes.NewReader(s.BodyHead), s.Body)
	resp := must.Get(http.ReadResponse(bufio.NewReader(r), nil))(t)
	b, err := io.ReadAll(resp.Body)
	must.True(t, err == nil || s.Truncated != "", "%v", err)
	return string(s.Head), string(b), s
}

// TestArchive crawls into all formats at once, and reads what was stored.
func TestArchive(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		same := strings.Repeat("<p>the same words</p>", 100)
		routes := testweb.Routes{
			"/same1": testweb.Content("text/html", []byte(same)), "/same2": testweb.Content("text/html", []byte(same)),
			"/chunked": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for i := range 3 {
					fmt.Fprintf(w, "part %d. ", i)
					w.(http.Flusher).Flush()
				}
			}),
			"/moved": testweb.Redirect(301, "/same1"), "/missing": testweb.Status(404),
			"/signs": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Usage", "train-ai=n")
				testweb.Page("signs", "/same2").ServeHTTP(w, r) // found, so requested, when /same1 has been committed
			}),
		}
		pages := []string{"/same1", "/chunked", "/moved", "/missing", "/signs"}
		web := serve(site("a.test", "User-agent: *\nAllow: /\nDisallow: /no\n", append(pages, "/no"), routes),
			site("b.test", "", nil,
				testweb.Routes{"/later": testweb.Flaky(1, testweb.Status(500), testweb.Page("later"))}))
		o := testOptions(t, web)
		o.GiveUpAfter = 20 * time.Second
		o.Archive.Formats, o.Archive.MaxFileBytes, o.Archive.Outlinks = allFormats, 8<<10, true
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/later"))
		checkOutput(t, o)

		captures := archived(t, o.Archive.Dir)
		for path, want := range map[string][]int{
			"/": {200}, "/robots.txt": {200}, "/moved": {301}, "/missing": {404}, "/chunked": {200}, "/no": nil,
		} {
			var got []int
			for _, e := range captures[web.URL("a.test", path)] {
				got = append(got, e.Status)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s is stored with status %v, want %v", path, got, want)
			}
		}
		if got := captures[web.URL("b.test", "/later")]; len(got) != 2 || got[0].Status+got[1].Status != 700 {
			t.Errorf("a page that was there at the second attempt is stored as %+v", got)
		}
		_, body, _ := page(t, o.Archive.Dir, web.URL("a.test", "/chunked"))
		assert.True(t, body == "part 0. part 1. part 2. ", "the body in chunks is %q", body)
		revisits := 0
		for _, path := range []string{"/same1", "/same2"} {
			_, body, s := page(t, o.Archive.Dir, web.URL("a.test", path))
			assert.Equal(t, body, same, path, "has", len(body), "bytes")
			if s.Entry.Mime == warc.MimeRevisit {
				revisits++
			}
		}
		assert.Equal(t, revisits, 1, "of two equal pages are revisits")
		facts := metadata(t, o.Archive.Dir)
		for _, want := range []string{
			"via: " + web.URL("a.test", "/") + "\r\n", "depth: 1\r\n",
			"robots: allowed\r\nrobots-reason: rule\r\nrobots-line: 2\r\nrobots-version: ", "delay: 20ms\r\n",
			"preference: content-usage: train-ai=n\r\n", "seed: true\r\n",
		} {
			if !strings.Contains(facts[web.URL("a.test", "/signs")]+facts[web.URL("a.test", "/")], want) {
				t.Errorf("the facts of a page do not have %q:\n%s", want, facts[web.URL("a.test", "/signs")])
			}
		}
		assert.Contains(t, facts[web.URL("a.test", "/")], "outlink: "+web.URL("a.test", "/same1")+"\r\n",
			"the facts of the root do not")
	})
}

// metadata are the blocks of the metadata records by URL.
func metadata(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	eachRecord(t, dir, func(rec *warc.Record) {
		b := must.Get(io.ReadAll(rec.Block))(t)
		if rec.Type() == warc.TypeMetadata {
			all[rec.Header.Get(warc.FieldTargetURI)] = string(b)
		}
	})
	return all
}

func eachRecord(t testing.TB, dir string, each func(*warc.Record)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.*z*"))
	must.True(t, err == nil && len(files) != 0, "files %v: %v", files, err)
	for _, name := range files {
		f := must.Get(os.Open(name))(t)
		defer f.Close()
		r := warc.NewReader(f)
		for {
			rec, err := r.Next()
			if err == io.EOF {
				break
			}
			must.Do(t, err)
			each(rec)
		}
	}
}

// TestArchiveAcrossRestarts: a content that an earlier run stored is not stored again.
func TestArchiveAcrossRestarts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		same := testweb.Content("text/html", bytes.Repeat([]byte("<p>always this</p>"), 200))
		web := serve(site("a.test", "", nil, testweb.Routes{"/one": same, "/two": same, "/three": same}))
		o := testOptions(t, web)
		o.Archive.Formats = []string{warcfiles.Name}
		for _, path := range []string{"/one", "/two", "/three"} {
			crawl(t, o, web.URL("a.test", path))
			checkArchive(t, o)
		}
		captures := archived(t, o.Archive.Dir)
		for path, want := range map[string]string{"/one": "text/html", "/two": warc.MimeRevisit,
			"/three": warc.MimeRevisit} {
			got := captures[web.URL("a.test", path)]
			assert.True(t, len(got) == 1 && got[0].Mime == want, "%s: %+v, want one of %s", path, got, want)
		}
	})
}

// TestArchiveInZstd: a crawl goes on with the records of an earlier run in another compression, and
// stores no content again.
func TestArchiveInZstd(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		same := testweb.Content("text/html", bytes.Repeat([]byte("<p>always this</p>"), 200))
		web := serve(site("a.test", "", nil, testweb.Routes{"/one": same, "/two": same, "/three": same}))
		o := testOptions(t, web)
		o.Archive.Formats = []string{warcfiles.Name}
		want := make(map[string]int)
		for path, c := range map[string]archive.Compression{
			"/one": {Format: warc.FormatGzip, Level: 1}, "/two": {Format: warc.FormatZstd, Level: 2},
			"/three": {Format: warc.FormatZstd, Level: 1},
		} {
			o.Archive.Records, o.Archive.DictionaryFile = c, ""
			if path == "/three" {
				o.Archive.DictionaryFile = "../../modules/warc/testdata/dictionary"
			}
			crawl(t, o, web.URL("a.test", path))
			checkArchive(t, o)
			want[warc.Compression(c).Extension()]++
		}
		got, bodies := make(map[string]int), 0
		for path, entries := range archived(t, o.Archive.Dir) {
			if strings.HasSuffix(path, "/robots.txt") {
				continue
			}
			base, _ := warc.Base(entries[0].Filename)
			got[strings.TrimPrefix(entries[0].Filename, base)]++
			if entries[0].Mime != warc.MimeRevisit {
				bodies++
			}
		}
		assert.True(t, maps.Equal(got, want) && bodies == 1, "%d bodies in %v, want 1 in %v", bodies, got, want)
		o.Archive.DictionaryFile = "warc_test.go"
		_, err := Open(o, testLog(t))
		assert.True(t, errors.Is(err, archive.ErrOption) && strings.Contains(err.Error(), "warc_test.go"),
			"a dictionary that is none: %v", err)
	})
}

// TestEqualBodiesInARow: a body is stored once, though the next answer with it comes before the
// first is committed, and in other chunks.
func TestEqualBodiesInARow(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		same := strings.Repeat("<p>always this</p>", 200)
		routes := testweb.Routes{}
		pages := paths("/same", 6)
		for i, p := range pages {
			routes[p] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				if i == 0 { // as a whole, and all others in chunks of their own
					w.Header().Set("Content-Length", fmt.Sprint(len(same)))
				}
				for rest := same; len(rest) > 0; {
					n := min(len(rest), 500*i+1000)
					_, _ = io.WriteString(w, rest[:n])
					if rest = rest[n:]; i > 0 {
						w.(http.Flusher).Flush()
					}
				}
			})
		}
		web := serve(site("a.test", "", pages, routes))
		o := testOptions(t, web)
		o.Archive.Formats = []string{warcfiles.Name}
		o.Frontier.Politeness.Delay = time.Millisecond
		crawl(t, o, web.URL("a.test", "/"))
		checkArchive(t, o)
		captures, whole := archived(t, o.Archive.Dir), 0
		for _, p := range pages {
			if _, body, s := page(t, o.Archive.Dir, web.URL("a.test", p)); body != same {
				t.Errorf("%s has %d bytes", p, len(body))
			} else if s.Entry.Mime != warc.MimeRevisit {
				whole++
			}
		}
		assert.Equal(t, whole, 1, len(pages), "equal bodies are stored", captures)
	})
}

// TestBrokenAnswers: what came of answers that break off within their body is in the archive, with
// why there is no more.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const begin = "<p>as far as it goes</p>"
		raw := func(text string, waits bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				_, _ = io.WriteString(c, text)
				if waits { // until nobody waits for it any more
					_, _ = c.Read(make([]byte, 1))
				}
			})
		}
		const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
		want := map[string]string{
			"/short": "disconnect", "/chunks": "disconnect", "/malformed": "disconnect", "/stalls": "time",
			"/packed": "", // is there as a whole, though it is no gzip
			"/coded":  "unspecified", "/robots.txt": "disconnect",
		}
		routes := testweb.Routes{
			"/short":     raw(head+"Content-Length: 1000\r\n\r\n"+begin, false),
			"/chunks":    raw(head+"Transfer-Encoding: chunked\r\n\r\n18\r\n"+begin+"\r\n100\r\n", false),
			"/malformed": raw(head+"Transfer-Encoding: chunked\r\n\r\n18\r\n"+begin+"\r\nzz\r\n", false),
			"/stalls":    raw(head+"Content-Length: 1000\r\n\r\n"+begin, true),
			"/coded":     raw(head+"Content-Encoding: gzip, br, zstd\r\nContent-Length: 24\r\n\r\n"+begin, false),
			"/packed":    raw(head+"Content-Encoding: gzip\r\nContent-Length: 24\r\n\r\n"+begin, false),
		}
		broken := testweb.Routes{"/robots.txt": raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+begin, false)}
		sites := []testweb.Site{{Host: "robots.test", Handler: broken}}
		seeds := []string{"robots.test/"}
		for path, h := range routes { // each on a host of its own: they hold theirs up
			host := path[1:] + ".test"
			sites, seeds = append(sites, site(host, "", nil, testweb.Routes{path: h})), append(seeds, host+path)
		}
		web := serve(sites...)
		for i, seed := range seeds {
			host, path, _ := strings.Cut(seed, "/")
			seeds[i] = web.URL(host, "/"+path)
		}
		o := testOptions(t, web)
		o.Archive.Formats = []string{warcfiles.Name, archive.FormatJSONL}
		o.Fetch.BodyIdleTimeout, o.Frontier.MaxAttempts, o.GiveUpAfter = time.Second, 1, time.Second
		crawl(t, o, seeds...)
		checkOutput(t, o)
		got := make(map[string]string)
		eachRecord(t, o.Archive.Dir, func(rec *warc.Record) {
			if rec.Type() != warc.TypeResponse {
				return
			}
			why := rec.Header.Get(warc.FieldTruncated)
			path := parse(t, rec.Header.Get(warc.FieldTargetURI)).RequestURI()
			if _, odd := want[path]; !odd || path == "/robots.txt" && why == "" {
				return
			}
			block := must.Get(io.ReadAll(rec.Block))(t)
			answer := must.Get(http.ReadResponse(bufio.NewReader(bytes.NewReader(block)), nil))(t)
			body, err := io.ReadAll(answer.Body)
			kept := begin
			if why == "unspecified" {
				kept = "" // refused unread
			}
			if err != nil || string(body) != kept || answer.ContentLength != int64(len(kept)) ||
				len(answer.TransferEncoding) > 0 {
				t.Errorf("%s: %q (%v)", rec.Header.Get(warc.FieldTargetURI), block, err)
			}
			got[path] = why
		})
		assert.True(t, maps.Equal(got, want), "records of answers that broke off: %v, want %v", got, want)
	})
}

// TestEndlessPage: a page of 1 GB with a limit of 10 MiB is stored as far as that, and says so.
func TestEndlessPage(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		block := bytes.Repeat([]byte("all work and no play. "), 3000)
		var sent int64
		endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "1000000000")
			for left := 1_000_000_000; left > 0; left -= len(block) {
				n, err := w.Write(block[:min(left, len(block))])
				if sent += int64(n); err != nil {
					return
				}
			}
		})
		web := serve(site("a.test", "", nil, testweb.Routes{"/long": endless}))
		o := testOptions(t, web)
		o.Archive.Formats, o.Fetch.MaxBody = []string{warcfiles.Name}, 10<<20
		crawl(t, o, web.URL("a.test", "/long"))
		checkArchive(t, o)
		_, body, s := page(t, o.Archive.Dir, web.URL("a.test", "/long"))
		assert.Not(t, s.Truncated, "", "the record does not say that it is truncated")
		assert.True(t, len(body) >= 10<<20 && len(body) <= 11<<20 && strings.HasPrefix(body, "all work"),
			"%d bytes are stored", len(body))
		truncated := 0
		eachRecord(t, o.Archive.Dir, func(rec *warc.Record) {
			if rec.Header.Get(warc.FieldTruncated) == "length" && rec.Type() == warc.TypeResponse {
				truncated++
			}
		})
		assert.Equal(t, truncated, 1, "records say WARC-Truncated: length")
		if answered(t, web); sent > 100<<20 {
			t.Errorf("the server sent %d bytes", sent)
		}
	})
}

// TestCaptureFollowsTheFormat: exchanges are kept where a format stores them.
func TestCaptureFollowsTheFormat(t *testing.T) {
	for format, want := range map[string]bool{warcfiles.Name: true, archive.FormatJSONL: false} {
		o := Options{Archive: defaultArchive(), Fetch: fetch.DefaultOptions()}
		o.Archive.Formats = []string{format}
		if o.fill(); o.Fetch.Capture != want {
			t.Errorf("%s: captured %t", format, o.Fetch.Capture)
		}
	}
}

// TestIdleFilesAreCompleted: a crawl that has nothing to write completes its files all the same,
// and goes on in new ones.
func TestIdleFilesAreCompleted(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 3), nil))
		o := testOptions(t, web)
		o.Archive.Formats, o.Archive.MaxFileAge = []string{warcfiles.Name, archive.FormatJSONL},
			200*time.Millisecond
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		idle := func() bool {
			open := must.Get(filepath.Glob(filepath.Join(o.Archive.Dir, "*.open")))(t)
			return len(open) == 0
		}
		testkit.Until(t, "all is fetched and no file is open",
			func() bool { return e.store.Counters().Of(storage.Fetched) == 4 && idle() })
		must.Get(e.Add(t.Context(), additions(t, web.URL("a.test", "/later"))))(t)
		testkit.Until(t, "one page more, and no file is open",
			func() bool { return e.store.Counters().Of(storage.Failed) == 1 && idle() })
		stop()
		assert.Equal(t, len(outputLines(t, o.Archive.Dir)), 5, "lines of pages")
		checkArchive(t, o)
	})
}
