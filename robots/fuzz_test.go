package robots

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

func addFiles(f *testing.F, add func(body []byte)) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		add([]byte(randomFile(rng)))
	}
	add([]byte(everything))
	add(utf16Of(everything))
	add(bytes.ReplaceAll([]byte(everything), []byte("\n"), []byte("\r")))
	add([]byte("\xEF\xBBUser-agent: *\x00\nDisallow: /\x00\xFF*$\n"))
}

// FuzzParse compares File with Rules: two readers of one file that must agree on group, delay,
// rules and line.
func FuzzParse(f *testing.F) {
	addFiles(f, func(body []byte) { f.Add(body, "/a/b") })
	f.Fuzz(func(t *testing.T, body []byte, uri string) {
		file := Parse(body)
		tokens := []string{"amble-news", "amble", "9b"}
		r, p := Compile(body, tokens...), file.Policy(tokens...)
		must.True(t, r.Group() == p.Group, "group %q and %q", r.Group(), p.Group)
		checkDelays(t, r, p)
		must.True(t, r.Equal(file.Rules(tokens...)), "File.Rules differ from Compile")
		n := len(p.Rules)
		must.True(t, r.Len() <= n, "%d rules of %d", r.Len(), n)
		e := r.Match(uri)
		if e.Reason == ReasonRule {
			found := false
			for _, rule := range p.Rules {
				found = found || rule.Line == e.Line && rule.Allow == e.Allowed
			}
			must.True(t, found && LineText(body, e.Line) != "", "explanation %+v of %+v", e, p)
		}
		must.True(t, len(Diff(file, Parse(body), tokens...)) == 0, "differs from itself")
		base := "https://a.example/robots.txt"
		_, sitemaps := Record{Class: ClassFound, Body: body, FinalURL: base}.Read(tokens...)
		want := file.Sitemaps(base)
		must.True(t, slices.Equal(sitemaps, want), "sitemaps %q, want %q", sitemaps, want)
		file.CleanParams()
		file.Hosts()
	})
}

func checkDelays(t *testing.T, r *Rules, p Policy) {
	want := -1.0
	if p.CrawlDelay != nil {
		want = *p.CrawlDelay
	}
	if p.RequestRate != nil {
		want = max(want, p.RequestRate.interval())
	}
	d, ok := r.CrawlDelay()
	must.True(t, ok == (want >= 0) && (!ok || d == toDuration(want) && d >= 0 && d <= MaxDelay) && !math.IsNaN(want) &&
		!math.IsInf(want, 0), "delay %v %v, the file says %v", d, ok, want)
}

// FuzzMatch matches one URL in several spellings with the same meaning.
func FuzzMatch(f *testing.F) {
	addFiles(f, func(body []byte) { f.Add(body, "/a?b=%41%e9*$") })
	f.Fuzz(func(t *testing.T, body []byte, uri string) {
		r := Compile(body, "amble")
		v := r.Match(uri)
		normal := appendURI(nil, uri)
		again, ok := r.match(normal, math.MaxInt)
		must.True(t, ok && again == v, "%q: %+v, in normal form %+v", uri, v, again)
		for work := 1; ; work *= 4 {
			within, ok := r.MatchWithin(uri, work)
			must.True(t, (!ok || within == v) && (ok || work <= 2*(len(body)+1)*(3*len(uri)+2)),
				"%q: %+v, within %d octets %+v, %v", uri, v, work, within, ok)
			if ok {
				break
			}
		}
		if v.Reason == ReasonRule && (v.Line < 1 || r.RuleText(v) == "") {
			t.Fatalf("%+v %q", v, r.RuleText(v))
		}
		must.True(t, !r.DisallowsAll() || !v.Allowed || v.Reason == ReasonRobotsFile,
			"%q: %+v, although all is disallowed", uri, v)
		r.MatchURL(uri)
	})
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range []Record{{}, fullRecord, good()} {
		b := must.Get(r.AppendBinary(nil))(f)
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		DecodeRecord(b)
		r, err := DecodeRecord(sealed(b))
		if err != nil {
			return
		}
		b, err = r.AppendBinary(nil)
		must.Do(t, err, r, "was read, and cannot be written")
		if again, err := DecodeRecord(b); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		DefaultOptions().Decide(r, time.Second, begin)
	})
}

// FuzzNext drives the state machine with any responses, and checks its invariants.
func FuzzNext(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "max-age=60", "120", "/x", []byte(everything))
	f.Add([]byte{200, 50, 0, 0, 50, 200}, "no-store", "Sat, 21 Nov 2026 10:30:00 GMT", "//a/b", []byte("<html>"))
	f.Fuzz(func(t *testing.T, steps []byte, cache, retry, location string, body []byte) {
		statuses := []int{200, 204, 206, 301, 304, 401, 404, 429, 500, 503, 0, 999}
		o, r, now, redirects := DefaultOptions(), Record{}, begin, 0
		for _, step := range steps[:min(len(steps), 64)] {
			out := Outcome{URL: robotsURL, Redirects: redirects, Status: statuses[int(step)%len(statuses)], Body: body}
			out.Header = Header{CacheControl: cache, RetryAfter: retry, Location: location, ETag: retry, Expires: cache,
				Age: retry}
			out.Failure, out.HostAnswers = Failure(step>>5), step&16 != 0
			var action Action
			r, action = o.Next(r, out, now)
			redirects = action.Redirects
			if action.Kind == ActionDone {
				checkRecord(t, o, r, now)
			} else if redirects > o.MaxRedirects {
				t.Fatal("redirects without end")
			}
			now = now.Add(time.Duration(step) * time.Duration(step) * time.Minute)
		}
	})
}

func checkRecord(t *testing.T, o Options, r Record, now time.Time) {
	wait := r.Refresh.Sub(now)
	must.True(t, wait >= o.MinRetry && wait <= day, "fetched again after %v: %+v", wait, r)
	s := o.Decide(r, 0, now)
	must.True(t, s.Kind != DecisionFetch && (s.Kind != DecisionMatch || s.Until.After(now)) && !s.RefreshDue,
		"no verdict in force right after an attempt: %+v of %+v", s, r)
	must.True(t, (r.Class == ClassUnreachable || r.Copy == ClassUnavailable && r.Failures > 0) == (r.Failures > 0) &&
		(r.Failures > 0) != r.FirstUnreachable.IsZero(), "failures and class do not agree: %+v", r)
	must.True(t, r.Class != ClassUnreachable || r.Copy != ClassNone || s.Kind == DecisionHold,
		"unreachable without a copy: %+v", s)
	b := must.Get(r.AppendBinary(nil))(t)
	back, err := DecodeRecord(b)
	must.True(t, err == nil && reflect.DeepEqual(back.Rules("x"), r.Rules("x")) && o.Decide(back, 0, now) == s,
		"%+v comes back as %+v, %v", r, back, err)
}
