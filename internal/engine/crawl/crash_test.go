package crawl

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// bomb is an observer that panics at some URLs: it stands for a parser, an encoder or a rule with a
// bug in it.
type bomb struct {
	mu  sync.Mutex
	at  string // the end of their URLs; empty: none
	hit int
}

func (b *bomb) Requested(q requestlog.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at != "" && strings.HasSuffix(q.URL.String(), b.at) {
		b.hit++
		var nothing []byte
		_ = nothing[len(q.URL.String())]
	}
}

func (b *bomb) Committed(time.Duration, int) {}

// bombHandler is a log handler that panics at messages of some beginning.
type bombHandler struct {
	slog.Handler
	at string
}

func (h bombHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h bombHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.at) {
		panic("bomb at " + r.Message)
	}
	return h.Handler.Handle(ctx, r)
}

// bombStore is a store with contents of an earlier run that panics where the making of WARC records
// reads one.
type bombStore struct{ store }

func (s bombStore) Counters() storage.Counters {
	c := s.store.Counters()
	c.Requests++ // of the earlier run
	return c
}

func (s bombStore) Payload(storage.HostID, uint64) (storage.Payload, bool, error) { panic("bomb") }

// crawlWith runs a crawl with an observer until it is done.
func crawlWith(t *testing.T, o Options, b *bomb, log *slog.Logger, seeds ...string) *Engine {
	t.Helper()
	e := must.Get(Open(o, log))(t)
	e.Observe(b)
	runToEnd(t, e, seeds...)
	return e
}

func runToEnd(t *testing.T, e *Engine, seeds ...string) {
	t.Helper()
	all := seedList(t, seeds...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sum, err := e.Run(ctx, all)
	if err := errors.Join(err, e.Close()); err != nil || sum.Stopped() {
		t.Fatalf("stopped: %v, %v", sum.Stopped(), err)
	}
}

// crashFiles are the files of a data directory with what amble failed at.
func crashFiles(t *testing.T, o Options) (texts []string) {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(o.DataDir, CrashDir, "*.crash")))(t)
	for _, name := range names {
		text := must.Get(os.ReadFile(name))(t)
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&^0o640 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// TestCrashCostsItsURL: a panic in a worker ends its URL, is counted and kept, and nothing else
// changes. The URL is not requested again by the same version, and by another one it is.
func TestCrashCostsItsURL(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", append(paths("/", 10), "/bomb"), nil), site("b.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		o.Version, o.Archive.Formats = "1.0", []string{archive.FormatJSONL, warcfiles.Name}
		b := &bomb{at: "/bomb"}
		seeds := []string{web.URL("a.test", "/"), web.URL("b.test", "/")}
		e := crawlWith(t, o, b, testLog(t), seeds...)
		assert.Equal(t, e.Status().Errors["crash"], 1, "crashes are counted")
		all := stored(t, o.DataDir)
		for u, outcome := range all {
			want := "fetched 200"
			if u == web.URL("a.test", "/bomb") {
				want = "failed crash 200"
			}
			assert.Equal(t, ended(outcome, false), want, u)
		}
		assert.Equal(t, len(all), 18, "URLs")
		line := outputLines(t, o.Archive.Dir)[web.URL("a.test", "/bomb")]
		assert.True(t, len(line) == 1 && line[0].Reason == "crash", "the output says %+v", line)
		checkOutput(t, o)
		files := crashFiles(t, o)
		must.True(t, len(files) == 1, "%d files of crashes, want 1", len(files))
		for _, part := range []string{"amble 1.0", web.URL("a.test", "/bomb"), "index out of range",
			"(*bomb).Requested",
			"HTTP/1.1 200", "Content-Type: ", "<html"} {
			assert.Contains(t, files[0], part, "the file of the crash lacks")
		}
		counts := hostErrors(t, o.DataDir, "a.test")
		assert.True(t, counts[0][inspect.ReasonName(storage.ReasonCrash)] == 1, "counted for the host: %v", counts[0])

		crawlWith(t, o, b, testLog(t), seeds...)
		assert.Equal(t, b.hit, 1, "the same version requested the URL times")
		o.Version = "1.1"
		crawlWith(t, o, b, testLog(t), seeds...)
		crawlWith(t, o, b, testLog(t), seeds...)
		got := ended(stored(t, o.DataDir)[web.URL("a.test", "/bomb")], false)
		assert.True(t, b.hit == 2 && got == "failed crash 200",
			"another version requested the URL %d times, and it is %q", b.hit-1, got)
		o.Version = "1.2"
		crawlWith(t, o, &bomb{}, testLog(t))
		assert.Equal(t, ended(stored(t, o.DataDir)[web.URL("a.test", "/bomb")], false), "fetched 200",
			"a version without the bug made it")
		checkNoMarks(t, o, sweep.MarkCrash, sweep.MarkOffer)
		assert.Equal(t, len(web.Requests().Pages()), 18+2, "pages were requested")
	})
}

// checkNoMarks fails where the store has marks of these beginnings.
func checkNoMarks(t *testing.T, o Options, prefixes ...string) {
	t.Helper()
	s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	for _, prefix := range prefixes {
		marks, err := s.Marks(prefix)
		assert.True(t, err == nil && len(marks) <= 0, "marks %s: %v, %v", prefix, marks, err)
	}
	assert.NoError(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
}

// TestCrashAtRobots: a robots.txt that a worker panics at holds its origin as one that cannot be
// reached does.
func TestCrashAtRobots(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 5), nil), site("b.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		e := crawlWith(t, o, &bomb{at: web.URL("a.test", "/robots.txt")}, testLog(t), web.URL("a.test", "/"),
			web.URL("b.test", "/"))
		assert.Not(t, e.Status().Errors["crash"], 0, "no crash is counted")
		got := web.Requests().Pages().CountByPath()
		assert.True(t, len(got) == 6 && got["a.test/"] == 0, "pages %v", got)
		assert.Equal(t, stored(t, o.DataDir)[web.URL("a.test", "/")].State, storage.Queued, "the URL that waits")
		s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
		defer s.Close()
		encoded := must.Get(s.Policy(parse(t, web.URL("a.test", "/")).Origin()))(t)
		record, err := robots.DecodeRecord(encoded)
		assert.True(t, err == nil && record.Class == robots.ClassUnreachable && record.Failure == robots.FailureCrash,
			"%v, %+v", err, record)
	})
}

// TestCrashesElsewhere: wherever a worker panics, the crawl comes to its end, and what is not
// concerned is fetched.
func TestCrashesElsewhere(t *testing.T) {
	t.Parallel()
	run := func(name string, test func(*testing.T, *testweb.Web)) {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				test(t, serve(
					site("a.test", "", paths("/", 5), testweb.Routes{"/list": testweb.Content("application/xml",
						[]byte("<urlset><url><loc>/x</loc></url><url><loc>/y"))}),
					site("b.test", "", paths("/", 5), nil)))
			})
		})
	}
	quiet := slog.NewTextHandler(io.Discard, nil)
	run("in a lookup", func(t *testing.T, web *testweb.Web) {
		o := testOptions(t, web)
		crawlWith(t, o, &bomb{}, slog.New(bombHandler{quiet, "cannot resolve"}), "http://nowhere.test/",
			web.URL("b.test", "/"))
		got := stored(t, o.DataDir)
		assert.True(t, got[web.URL("b.test", "/")].State == storage.Fetched && len(got) == 7, "%v", got)
	})
	run("in a sitemap", func(t *testing.T, web *testweb.Web) {
		o := testOptions(t, web)
		crawlWith(t, o, &bomb{}, slog.New(bombHandler{quiet, "a sitemap or feed is longer"}),
			web.URL("a.test", "/list"), web.URL("b.test", "/"))
		assert.Equal(t, ended(stored(t, o.DataDir)[web.URL("a.test", "/list")], false), "failed crash 200",
			"the sitemap")
		checkOutput(t, o)
	})
	run("in the making of records", func(t *testing.T, web *testweb.Web) {
		o := testOptions(t, web)
		o.Archive.Formats = []string{warcfiles.Name, archive.FormatJSONL}
		s := must.Get(storage.Open(o.DataDir, o.Storage))(t)
		e := must.Get(open(o, bombStore{s}, slog.New(quiet)))(t)
		runToEnd(t, e, web.URL("b.test", "/"))
		assert.Equal(t, ended(stored(t, o.DataDir)[web.URL("b.test", "/")], false), "failed crash 200", "the page")
		lines := outputLines(t, o.Archive.Dir)[web.URL("b.test", "/")]
		assert.True(t, len(lines) == 1 && lines[0].Reason == "crash", "lines %+v", lines)
	})
}

// TestStackIsLoggedOnce: of panics from one place the log has one stack.
func TestStackIsLoggedOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", []string{"/1/bomb", "/2/bomb", "/3/bomb"}, nil))
		o := testOptions(t, web)
		var text strings.Builder
		b := &bomb{at: "/bomb"}
		crawlWith(t, o, b, slog.New(slog.NewTextHandler(&text, nil)), web.URL("a.test", "/"))
		n := strings.Count(text.String(), "stack=")
		assert.True(t, b.hit == 3 && n == 1, "%d panics, %d stacks:\n%s", b.hit, n, text.String())
		assert.Equal(t, len(crashFiles(t, o)), 3, "files")
	})
}
