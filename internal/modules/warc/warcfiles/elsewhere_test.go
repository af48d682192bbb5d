package warcfiles

import (
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// recordOf returns the first record of the response to an exchange: its header.
func recordOf(t *testing.T, o archive.Options, x *archive.Exchange) warc.Header {
	t.Helper()
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	mustWrite(t, w, mustEncode(t, e, &archive.Visit{Exchange: x}))
	must.Get(w.Finish())(t)
	must.Do(t, w.Committed())
	w.Close()
	verify(t, o.Dir)
	name := must.Get(filepath.Glob(filepath.Join(o.Dir, "*.warc.gz")))(t)
	f := must.Get(os.Open(name[0]))(t)
	defer f.Close()
	r := warc.NewReader(f)
	must.Get(r.Next())(t)
	return must.Get(r.Next())(t).Header
}

func sha1Text(body string) string {
	sum := sha1.Sum([]byte(body))
	return base32.StdEncoding.EncodeToString(sum[:])
}

// others are lines of indexes that say when a body was stored, in the formats of several programs.
func others(url, body string) map[string]string {
	key := warc.IndexKey(url)
	return map[string]string{
		"amble": fmt.Sprintf(`%s 20250102030405 {"url":%q,"mime":"text/html","status":"200","digest":%q,"length":"9",`+
			`"offset":"0","filename":"x.warc.gz"}`, key, url, digest.Of([]byte(body)).String()),
		"pywb": fmt.Sprintf(`%s 20250102030405 {"url": %q, "mime": "text/html", "status": "200", "digest": "%s", `+
			`"length": "9", "offset": "0", "filename": "x.warc.gz"}`, key, url, sha1Text(body)),
		"wayback": fmt.Sprintf("%s 20250102030405 %s text/html 200 %s 1234", key, url, sha1Text(body)),
	}
}

// TestConcurrentElsewhere: a body that another collection has for the same URL becomes a revisit record; any other is
// stored.
func TestConcurrentElsewhere(t *testing.T) {
	const url, body = "http://h.test/page", "the body of a page"
	gone := strings.NewReplacer(`"200"`, `"404"`, " 200 ", " 404 ")
	for name, line := range others(url, body) {
		for other, want := range map[string]string{
			line:                              warc.TypeRevisit,
			others(url, "another body")[name]: warc.TypeResponse,
			others("http://h.test/other", body)[name]:               warc.TypeResponse,
			gone.Replace(line):                                      warc.TypeResponse,
			strings.ReplaceAll(line, "text/html", warc.MimeRevisit): warc.TypeResponse,
			strings.ReplaceAll(line, "2025", "2099"):                warc.TypeResponse,
		} {
			all := "aa)/ 20200101000000 {}\n" + other + "\n" + "zz)/ 20200101000000 {}\n"
			o := allOptions(t)
			o.Formats, o.Dedupe = []string{Name}, filepath.Join(t.TempDir(), "index.cdxj")
			must.Do(t, os.WriteFile(o.Dedupe, []byte(all), 0o600))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("url") != url || r.UserAgent() != "amble-test" || r.FormValue("x") != "y" {
					t.Errorf("the request is %s by %s", r.URL, r.UserAgent())
				}
				fmt.Fprintln(w, other)
			}))
			served := o
			served.Dir, served.Dedupe = filepath.Join(t.TempDir(), "output"), server.URL+"/cdx?x=y"
			for _, o := range []archive.Options{o, served} {
				x := exchangeOf(url, body, 0)
				item := mustEncode(t, newEncoder(t, o), &archive.Visit{Exchange: x})
				assert.True(t, item.Stored == (want == warc.TypeResponse), "%s: want a %s record by %s", o.Dedupe,
					want, other)
				if item.Close(); want == warc.TypeResponse {
					continue
				}
				h := recordOf(t, o, x)
				if h.Get(warc.FieldType) != want || h.Get(warc.FieldRefersToTargetURI) != url ||
					h.Get(warc.FieldRefersToDate) != "2025-01-02T03:04:05Z" ||
					h.Get(warc.FieldRefersToIndex) != o.Dedupe {
					t.Errorf("%s: %v", name, h)
				}
			}
			server.Close()
		}
	}
}

// TestConcurrentElsewhereFails: no failure of a server loses a page, and a server that fails is left alone for a while.
func TestConcurrentElsewhereFails(t *testing.T) {
	type (
		out = http.ResponseWriter
		in  = *http.Request
	)
	for name, handler := range map[string]http.HandlerFunc{
		"error":     func(w out, _ in) { w.WriteHeader(http.StatusInternalServerError) },
		"busy":      func(w out, _ in) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) },
		"redirect":  func(w out, r in) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"broken":    func(out, in) { panic(http.ErrAbortHandler) },
		"long line": func(w out, _ in) { _, _ = w.Write(make([]byte, 5<<20)) },
	} {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			handler(w, r)
		}))
		var warnings []string
		o := allOptions(t)
		o.Formats, o.DedupeDelay = []string{Name}, time.Millisecond
		o.Dedupe = strings.Replace(server.URL, "http://", "http://user:secret@", 1)
		o.Info = &archive.Info{Warn: func(err error) { warnings = append(warnings, err.Error()) }}
		e := must.Get(newElsewhere(&o))(t)
		for i, seconds := range []int{0, 0, 1000} { // the second one comes while the server is left alone
			a := &answer{x: exchangeOf("http://h.test/", "x", seconds)}
			found := e.find(a)
			assert.True(t, found == nil, "%s: %v", name, found)
			n, want := int(requests.Load()), []int{1, 1, 2}[i]
			assert.True(t, n == want, "%s: %d requests, want %d", name, n, want)
		}
		if len(warnings) != 2 || strings.Contains(warnings[0], "secret") ||
			!strings.Contains(warnings[0], "archive.dedupe") ||
			name == "busy" && !strings.Contains(warnings[0], "for 7s") {
			t.Errorf("%s: the warnings are %q", name, warnings)
		}
		item := mustEncode(t, newEncoder(t, o), &archive.Visit{Exchange: exchangeOf("http://h.test/", "x", 0)})
		if item.Close(); !item.Stored {
			t.Errorf("%s: it is not stored", name)
		}
		server.Close()
	}
}

// TestConcurrentElsewherePace: between the end of a request to a server and the start of the next is the delay.
func TestConcurrentElsewherePace(t *testing.T) {
	const delay = 50 * time.Millisecond
	var ended atomic.Int64
	var short, inFlight atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if inFlight.Add(1) > 1 || time.Now().UnixNano()-ended.Load() < int64(delay) {
			short.Add(1)
		}
		ended.Store(time.Now().UnixNano())
		inFlight.Add(-1)
	}))
	defer server.Close()
	o := allOptions(t)
	o.Dedupe, o.DedupeDelay = server.URL, delay
	e := must.Get(newElsewhere(&o))(t)
	done := make(chan struct{})
	for range 4 {
		go func() {
			for range 3 {
				e.find(&answer{x: exchangeOf("http://h.test/", "x", 0)})
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
	assert.True(t, short.Load() <= 0 && ended.Load() != 0, "%d requests came too early", short.Load())
}

// TestElsewhereOptions: an index that cannot be used ends the start, with a word that helps.
func TestElsewhereOptions(t *testing.T) {
	packed := filepath.Join(t.TempDir(), "index.cdxj.gz")
	must.Do(t, os.WriteFile(packed, []byte("\x1f\x8b\x08 and so on\n"), 0o600))
	for source, want := range map[string]string{
		"http://":          "want a file or the URL of a CDX server",
		"/none/index.cdxj": "no such file",
		packed:             "unpack it",
	} {
		o := allOptions(t)
		o.Formats, o.Dedupe = []string{Name}, source
		_, err := archive.NewEncoder(o, nil)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", source, err)
	}
}
