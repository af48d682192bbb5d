package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// committedOffset returns the offset in the start ledger before which all is committed.
func committedOffset(t *testing.T, s interface{ Mark(string) ([]byte, error) }) uint64 {
	t.Helper()
	mark := must.Get(s.Mark(storage.MarkLedger))(t)
	return must.Get(storage.DecodeOffset(mark))(t)
}

// die leaves a data directory as a process does that is killed while requests are out. With orderly
// it meant to end.
func die(t *testing.T, dir, bootID string, orderly bool, out ...starts.Start) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{ReadOnly: true})
	must.Do(t, err)
	committed := committedOffset(t, s)
	must.Do(t, s.Close())
	uncommitted, err := starts.Read(dir, committed, boot.ID(), nil)
	must.Do(t, err)
	l, err := starts.Open(dir, bootID, uncommitted.End)
	must.Do(t, err)
	for _, start := range out {
		must.Get(l.Append(start))(t)
	}
	if orderly {
		err = l.AppendEnd(time.Now())
	}
	must.Do(t, errors.Join(err, l.Close()))
}

// pageOut is a request for a page that is out, robotsOut one for a robots.txt.
func pageOut(t *testing.T, url string) starts.Start {
	u := parse(t, url)
	return starts.Start{Host: u.Host(), Address: "127.0.0.1", At: time.Now().Add(time.Minute),
		Note: recovery.Note(&frontier.Lease{Kind: frontier.Page, URL: u})}
}

func robotsOut(t *testing.T, url, origin string) starts.Start {
	l := frontier.Lease{Kind: frontier.Robots, URL: parse(t, url),
		Robots: &frontier.RobotsJob{Origin: parse(t, origin).Origin()}}
	return starts.Start{
		Host: l.URL.Host(), Address: "127.0.0.1", At: time.Now().Add(time.Minute), Note: recovery.Note(&l),
	}
}

// reopen opens a data directory as the next process does, and closes it.
func reopen(t *testing.T, o Options) {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	must.Do(t, e.Close())
}

// known is a data directory that knows URLs, with nothing fetched.
func known(t *testing.T, urls ...string) Options {
	t.Helper()
	web := startWeb(t, testweb.Site{Host: "unused.test"})
	o := testOptions(t, web)
	commitTo(t, o, func(s *storage.Store, b *storage.Batch) {
		for _, text := range urls {
			u := parse(t, text)
			b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u)})
		}
	})
	return o
}

// TestDeathsAreCounted: a URL that was in flight at three deaths in a row is set aside. What is no
// death, and what was not in flight, does not count. In real time: nothing waits.
func TestDeathsAreCounted(t *testing.T) {
	t.Parallel()
	const u, other = "http://a.test/x", "http://b.test/y"
	thisBoot := boot.ID()
	for name, test := range map[string]struct {
		lives []string // what ends each process: with u or other in flight, or neither
		want  string
	}{
		"three deaths":                       {[]string{"u", "u", "u"}, "failed crash"},
		"with others":                        {[]string{"u other", "other u", "u other"}, "failed crash"},
		"two deaths":                         {[]string{"u", "u"}, "retrying"},
		"one death":                          {[]string{"u"}, "queued"},
		"not in a row":                       {[]string{"u", "u", "other", "u"}, "retrying"},
		"an end that was meant":              {[]string{"u", "u", "end", "u", "u"}, "retrying"},
		"in flight at an end that was meant": {[]string{"u", "u", "end u"}, "retrying"},
		"a death before the first request":   {[]string{"u", "u", "", "u"}, "failed crash"},
		"the end of the machine":             {[]string{"u", "u", "machine u"}, "retrying"},
		"the machine between two deaths":     {[]string{"u", "machine", "u", "machine u", "u"}, "failed crash"},
		"a robots.txt is not a page":         {[]string{"robots", "robots", "robots"}, "queued"},
		"more than three":                    {[]string{"u", "u", "u", "u"}, "failed crash"},
		", which some were never written":    {[]string{"u", "torn", "torn"}, "queued"},
		"killed while the count is written":  {[]string{"u", "again", "u", "again"}, "retrying"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := known(t, u, other)
			for _, life := range test.lives {
				var out []starts.Start
				ends, orderly := thisBoot, false
				for word := range strings.FieldsSeq(life) {
					switch word {
					case "u":
						out = append(out, pageOut(t, u))
					case "other":
						out = append(out, pageOut(t, other))
					case "robots":
						out = append(out, robotsOut(t, "http://a.test/robots.txt", "http://a.test/"))
					case "end":
						orderly = true
					case "machine":
						ends = "another"
					}
				}
				if life != "again" && life != "torn" {
					die(t, o.DataDir, ends, orderly, out...)
				}
				reopen(t, o)
			}
			got := stored(t, o.DataDir)
			again := test.want == "retrying" && got[u].State == storage.Retrying
			end := ended(got[u], false)
			assert.True(t, end == test.want || again, "it is %q, want %q", end, test.want)
			if test.want == "failed crash" {
				lines := outputLines(t, o.Archive.Dir)[u]
				assert.True(t, len(lines) == 1 && lines[0].Reason == "crash", "the output says %+v", lines)
			}
		})
	}
}

// TestEndInOrderForgetsDeaths: a process that ends as it meant to, with nothing out, clears what
// was in flight at deaths.
func TestEndInOrderForgetsDeaths(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"))
		u := web.URL("a.test", "/later")
		s, err := storage.Open(o.DataDir, storage.Options{})
		must.Do(t, err)
		found := storage.Found{URL: parse(t, u), Fingerprint: s.Fingerprint(parse(t, u))}
		_, err = s.Commit(&storage.Batch{Found: []storage.Found{found}})
		must.Do(t, errors.Join(err, s.Close()))
		die(t, o.DataDir, boot.ID(), false, pageOut(t, u))
		reopen(t, o)
		checkMarks := func(want int) {
			t.Helper()
			s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
			defer s.Close()
			marks, err := s.Marks(marks.Deaths)
			assert.True(t, err == nil && len(marks) == want, "%d marks, want %d (%v)", len(marks), want, err)
		}
		checkMarks(1)
		crawl(t, o)
		checkMarks(0)
	})
}

// TestShutdownIsNoDeath: while a process waits for its last requests, its ledger says that it is
// shutting down, so a kill at that time is not the fault of any of them.
func TestShutdownIsNoDeath(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		requested, ended := make(chan struct{}), make(chan struct{})
		web := serve(site("a.test", "", nil, testweb.Routes{
			"/held": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(requested); <-ended }),
		}))
		o := testOptions(t, web)
		o.ShutdownGrace = time.Minute
		e, err := Open(o, testLog(t))
		must.Do(t, err)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			<-requested
			stop()
			for range 30_000 {
				if uncommitted, err := starts.Read(o.DataDir, 0, boot.ID(), nil); err == nil &&
					uncommitted.Ended {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Error("the ledger does not say that the process is shutting down")
		}()
		_, err = e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/held"))})
		must.Do(t, errors.Join(err, e.Close()))
	})
}

// TestSuspectsAreSeparated: what was in flight at two deaths is requested at different times, and
// not at once. In real time: nothing waits.
func TestSuspectsAreSeparated(t *testing.T) {
	t.Parallel()
	var urls []string
	var out []starts.Start
	for i := range 64 {
		urls = append(urls, fmt.Sprintf("http://h%d.test/", i))
	}
	o := known(t, urls...)
	for _, u := range urls {
		out = append(out, pageOut(t, u))
	}
	for range 2 {
		die(t, o.DataDir, boot.ID(), false, out...)
		reopen(t, o)
	}
	times := make(map[int64]int)
	for u, outcome := range stored(t, o.DataDir) {
		const most = recovery.SuspectAfter + recovery.MaxSuspense + time.Second
		assert.True(t, outcome.State == storage.Retrying && time.Until(outcome.Due) <= most, "%s is %s, due %v", u,
			outcome.State, outcome.Due)
		if !outcome.At.IsZero() { // else the request log would not know the next request as a second one
			t.Errorf("%s was never fetched, and is said to have an outcome of %v", u, outcome.At)
		}
		times[outcome.Due.Unix()]++ // due times are whole seconds
	}
	for at, n := range times {
		if n > 12 {
			t.Errorf("%d URLs are due at %v", n, time.Unix(at, 0))
		}
	}
}

// TestDeathsAtRobots: a robots.txt that was in flight at three deaths in a row holds its origin for
// as long as one can be held, also where the request for it was made elsewhere.
// In real time: nothing waits.
func TestDeathsAtRobots(t *testing.T) {
	t.Parallel()
	o := known(t, "http://a.test/x")
	for range 3 {
		die(t, o.DataDir, boot.ID(), false, robotsOut(t, "http://cdn.test/robots.txt", "http://a.test/"))
		reopen(t, o)
	}
	s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	encoded := must.Get(s.Policy(parse(t, "http://a.test/").Origin()))(t)
	record, err := robots.DecodeRecord(encoded)
	decision := o.Frontier.Robots.Decide(record, 0, time.Now())
	assert.True(t, err == nil && decision.Kind == robots.DecisionHold && time.Until(decision.Until) >= 23*time.Hour &&
		record.Failure == robots.FailureCrash, "%v, %+v, %+v", err, record, decision)
}

// TestPageThatKills: a page that ends the process each time it is fetched is set aside after three
// times, and all others are fetched. In real time: processes die.
func TestPageThatKills(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", append(paths("/", 8), "/kills"), nil),
		site("b.test", "", paths("/", 40), nil))
	dir, o := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: 20 * time.Millisecond,
		Seeds: seedsOf(web, web.Sites()), Formats: []string{"jsonl"}, Compress: "none", Kills: "/kills",
	})
	deaths := 0
	for {
		child, done := startChild(t, dir)
		select {
		case err := <-done:
			if err == nil {
				break
			}
			if deaths++; deaths > 6 {
				t.Fatalf("the process has died %d times", deaths)
			}
			continue
		case <-time.After(patience):
			_ = child.Process.Kill()
			<-done
			t.Fatal("the crawl does not end")
		}
		break
	}
	assert.Equal(t, deaths, recovery.FatalDeaths, "the process died times")
	for u, outcome := range stored(t, o.DataDir) {
		want := "fetched 200"
		if u == web.URL("a.test", "/kills") {
			want = "failed crash"
		}
		assert.Equal(t, ended(outcome, false), want, u)
	}
}

// killer is an observer that ends the process, as nothing can that is caught, when a URL has been
// answered.
type killer struct {
	bomb
	at string
}

func (k *killer) Requested(q requestlog.Request) {
	if strings.HasSuffix(q.URL.String(), k.at) {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			_ = p.Kill()
		}
		select {}
	}
}
