package robots

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var (
	begin     = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	robotsURL = "https://www.example.com/robots.txt"
	rulesBody = []byte("User-agent: *\nDisallow: /private\n")
)

const (
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

func response(status int, body string, h Header) Outcome {
	return Outcome{URL: robotsURL, Status: status, Body: []byte(body), Header: h}
}

// good is the record of a file that was fetched at begin, with a lifetime of a day.
func good() Record {
	r, _ := DefaultOptions().Next(Record{}, response(200, string(rulesBody), Header{ETag: `"1"`}), begin)
	return r
}

// TestNextAnswer has one row for each kind of response: its class, the verdict on a page, and the
// lifetime.
func TestNextAnswer(t *testing.T) {
	at := func(d time.Duration) string { return begin.Add(d).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	html := "<!DOCTYPE html>\n<html><body>Not found: nothing here</body></html>\n"
	rules := string(rulesBody)
	tests := []struct {
		name     string
		out      Outcome
		class    Class
		private  Verdict // for /private
		lifetime time.Duration
	}{
		{"200 with rules", response(200, rules, Header{}), ClassFound, Verdict{false, ReasonRule, 2, 0}, day},
		{"203 with rules", response(203, rules, Header{}), ClassFound, Verdict{false, ReasonRule, 2, 0}, day},
		{"200 empty", response(200, "", Header{}), ClassFound, Verdict{true, ReasonNoGroup, 0, 0}, day},
		{"204", response(204, "", Header{}), ClassFound, Verdict{true, ReasonNoGroup, 0, 0}, day},
		{"only comments", response(200, "# welcome\n", Header{}), ClassFound, Verdict{true, ReasonNoGroup, 0, 0}, day},
		{"only a sitemap", response(200, "Sitemap: /s.xml\n", Header{}), ClassFound, Verdict{true, ReasonNoGroup, 0, 0},
			day},
		{"HTML instead", response(200, html, Header{ContentType: "text/html"}), ClassNotRobots,
			Verdict{true, ReasonNotRobots, 0, 0}, hour},
		{"HTML with a long max-age", response(200, html, Header{CacheControl: "max-age=86400"}), ClassNotRobots,
			Verdict{true, ReasonNotRobots, 0, 0}, hour},
		{"HTML served as text/html with rules in it", response(200, "<pre>\n"+rules+"</pre>",
			Header{ContentType: "text/html"}), ClassFound, Verdict{false, ReasonRule, 3, 0}, day},
		{"JSON instead", response(200, `{"error": "not found"}`, Header{}), ClassNotRobots,
			Verdict{true, ReasonNotRobots, 0, 0}, hour},
		{"404", response(404, html, Header{}), ClassUnavailable, Verdict{true, ReasonUnavailable, 0, 0}, day},
		{"404 with rules in its body", response(404, "User-agent: *\nDisallow: /", Header{}), ClassUnavailable,
			Verdict{true, ReasonUnavailable, 0, 0}, day},
		{"410 with max-age", response(410, "", Header{CacheControl: "max-age=3600"}), ClassUnavailable,
			Verdict{true, ReasonUnavailable, 0, 0}, hour},
		{"400", response(400, "", Header{}), ClassUnavailable, Verdict{true, ReasonUnavailable, 0, 0}, day},
		{"401", response(401, "", Header{}), ClassUnavailable, Verdict{true, ReasonUnavailable, 0, 0}, day},
		{"403", response(403, "", Header{}), ClassUnavailable, Verdict{true, ReasonUnavailable, 0, 0}, day},
		{"451", response(451, "", Header{}), ClassUnavailable, Verdict{true, ReasonUnavailable, 0, 0}, day},
		{"300", response(300, "", Header{}), ClassUnavailable, Verdict{true, ReasonUnavailable, 0, 0}, day},

		{"max-age", response(200, rules, Header{CacheControl: "public, max-age=7200"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 2 * hour},
		{"max-age in quotes and capitals", response(200, rules, Header{CacheControl: `Max-Age="7200"`}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 2 * hour},
		{"max-age less Age", response(200, rules, Header{CacheControl: "max-age=7200", Age: "3600"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, hour},
		{"Age beyond max-age", response(200, rules, Header{CacheControl: "max-age=7200", Age: "36000"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 10 * minute},
		{"the smaller of two max-age", response(200, rules, Header{CacheControl: "max-age=7200, max-age=3600"}),
			ClassFound, Verdict{false, ReasonRule, 2, 0}, hour},
		{"max-age of a second", response(200, rules, Header{CacheControl: "max-age=1"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, minute},
		{"max-age of two minutes", response(200, rules, Header{CacheControl: "max-age=120"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 2 * minute},
		{"max-age of nothing", response(200, rules, Header{CacheControl: "max-age=0, must-revalidate"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 10 * minute},
		{"max-age of a year", response(200, rules, Header{CacheControl: "max-age=31536000"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, day},
		{"max-age that overflows", response(200, rules, Header{CacheControl: "max-age=99999999999999999999"}),
			ClassFound, Verdict{false, ReasonRule, 2, 0}, day},
		{"max-age that is no number", response(200, rules, Header{CacheControl: "max-age=-5"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, day},
		{"no-store", response(200, rules, Header{CacheControl: "no-store, max-age=7200"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 10 * minute},
		{"no-cache", response(200, rules, Header{CacheControl: "no-cache"}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 10 * minute},
		{"Expires less Date", response(200, rules, Header{Expires: at(5 * hour), Date: at(2 * hour)}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 3 * hour},
		{"Expires without Date", response(200, rules, Header{Expires: at(3 * hour)}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 3 * hour},
		{"Expires in the past", response(200, rules, Header{Expires: at(-hour)}), ClassFound,
			Verdict{false, ReasonRule, 2, 0}, 10 * minute},
		{"Expires: 0", response(200, rules, Header{Expires: "0"}), ClassFound, Verdict{false, ReasonRule, 2, 0},
			10 * minute},
		{"max-age before Expires", response(200, rules, Header{CacheControl: "max-age=7200", Expires: at(hour)}),
			ClassFound, Verdict{false, ReasonRule, 2, 0}, 2 * hour},
	}
	o := DefaultOptions()
	for _, tt := range tests {
		r, action := o.Next(Record{}, tt.out, begin)
		assert.Equal(t, action.Kind, ActionDone, tt.name, "action", action)
		assert.True(t, r.Class == tt.class && r.Copy == tt.class && r.Status == tt.out.Status &&
			r.FinalURL == robotsURL, "%s: record %+v, want class %v", tt.name, r, tt.class)
		assert.Equal(t, r.Rules("amble").Match("/private"), tt.private, tt.name, "verdict")
		if d := r.Expires.Sub(r.Fetched); d != tt.lifetime || !r.Fetched.Equal(begin) {
			t.Errorf("%s: lifetime %v from %v, want %v", tt.name, d, r.Fetched, tt.lifetime)
		}
		if ahead := r.Refresh.Sub(begin); ahead < tt.lifetime*3/4 || ahead >= tt.lifetime {
			t.Errorf("%s: refresh after %v of %v", tt.name, ahead, tt.lifetime)
		}
		if s := o.Decide(r, 0, begin); s.Kind != DecisionMatch || !s.Until.Equal(r.Expires) || s.RefreshDue {
			t.Errorf("%s: decision %+v", tt.name, s)
		}
	}
}

// TestNextUnreachable has one row for each kind of failure, and the wait before the next attempt.
func TestNextUnreachable(t *testing.T) {
	failed := func(f Failure) Outcome { return Outcome{URL: robotsURL, Failure: f} }
	tests := []struct {
		name string
		out  Outcome
		wait time.Duration
	}{
		{"429", response(429, "", Header{}), minute},
		{"429, seconds", response(429, "", Header{RetryAfter: "300"}), 5 * minute},
		{"429, date", response(429, "", Header{RetryAfter: "Sat, 21 Nov 2026 10:30:00 GMT"}), 30 * minute},
		{"429, date of RFC 850", response(429, "", Header{RetryAfter: "Saturday, 21-Nov-26 10:30:00 GMT"}),
			30 * minute},
		{"429, date of asctime", response(429, "", Header{RetryAfter: "Sat Nov 21 10:30:00 2026"}), 30 * minute},
		{"429, date in the past", response(429, "", Header{RetryAfter: "Sat, 21 Nov 2020 10:30:00 GMT"}), minute},
		{"429, nothing", response(429, "", Header{RetryAfter: "0"}), minute},
		{"429, a year", response(429, "", Header{RetryAfter: "31536000"}), day},
		{"429, overflow", response(429, "", Header{RetryAfter: "99999999999999999999"}), day},
		{"429, words", response(429, "", Header{RetryAfter: "soon"}), minute},
		{"500", response(500, string(rulesBody), Header{}), minute},
		{"503, seconds", response(503, "", Header{RetryAfter: "7200"}), 2 * hour},
		{"599", response(599, "", Header{}), minute},
		{"206", response(206, string(rulesBody), Header{}), minute},
		{"status 700", response(700, "", Header{}), minute},
		{"status 100", response(100, "", Header{}), minute},
		{"304 to a plain request", response(304, "", Header{}), minute},
		{"dns", failed(FailureDNS), minute},
		{"connect", failed(FailureConnect), minute},
		{"tls", failed(FailureTLS), minute},
		{"timeout", failed(FailureTimeout), minute},
		{"broken transfer", failed(FailureTransfer), minute},
		{"blocked", failed(FailureBlocked), minute},
		{"protocol", failed(FailureProtocol), minute},
		{"200 that broke off", Outcome{URL: robotsURL, Status: 200, Body: rulesBody, Failure: FailureTransfer}, minute},
	}
	o := DefaultOptions()
	for _, tt := range tests {
		r, action := o.Next(Record{}, tt.out, begin)
		assert.True(t, action.Kind == ActionDone && r.Class == ClassUnreachable && r.Copy == ClassNone &&
			r.Failures == 1, "%s: %+v, %+v", tt.name, r, action)
		v := r.Rules("amble").Match("/")
		assert.True(t, !v.Allowed && v.Reason == ReasonUnreachable, "%s: verdict %+v", tt.name, v)
		assert.True(t, r.Rules("amble").DisallowsAll() && r.FirstUnreachable.Equal(begin), "%s: %+v", tt.name, r)
		want := Decision{Kind: DecisionHold, Until: begin.Add(tt.wait), Reason: ReasonUnreachable}
		assert.Equal(t, o.Decide(r, 0, begin), want, tt.name, "decision")
		assert.Equal(t, o.Decide(r, 0, begin.Add(tt.wait)).Kind, DecisionFetch, tt.name, "after the wait")
	}
}

func TestNextBackoffDoubles(t *testing.T) {
	o := DefaultOptions()
	for _, jitter := range []float64{0, 0.5, 1, -3, 7} {
		var r Record
		now := begin
		for i, want := range []time.Duration{minute, 2 * minute, 4 * minute, 8 * minute, 16 * minute, 32 * minute, hour,
			hour, hour} {
			r, _ = o.Next(r, Outcome{URL: robotsURL, Failure: FailureTimeout, Jitter: jitter}, now)
			got := r.Refresh.Sub(now)
			if jitter > 0 && jitter <= 1 {
				want += time.Duration(jitter * float64(want) / 4)
			}
			assert.True(t, got == want && r.Failures == i+1 && r.FirstUnreachable.Equal(begin),
				"jitter %v, failure %d: wait %v, want %v; %+v", jitter, i+1, got, want, r)
			now = r.Refresh
		}
		r, _ = o.Next(r, response(200, string(rulesBody), Header{}), now)
		assert.True(t, r.Failures == 0 && r.FirstUnreachable.IsZero() && r.Class == ClassFound,
			"a success does not end the row of failures: %+v", r)
	}
}

func TestNextForbidden(t *testing.T) {
	o := DefaultOptions()
	o.ForbiddenDenies = true
	for _, status := range []int{401, 403} {
		r, _ := o.Next(good(), response(status, "", Header{}), begin)
		assert.True(t, r.Class == ClassForbidden && r.Body == nil && r.Rules("x").DisallowsAll(), "%d: %+v", status, r)
		v := r.Rules("x").Match("/")
		assert.True(t, !v.Allowed && v.Reason == ReasonForbidden, "%d: %+v", status, v)
		want := Decision{Kind: DecisionHold, Until: r.Refresh, Reason: ReasonForbidden}
		assert.Equal(t, o.Decide(r, 0, begin.Add(hour)), want, status, "decision")
		assert.Equal(t, o.Decide(r, 0, r.Refresh).Kind, DecisionFetch, status, "decision when the next request is due")
		r, _ = o.Next(r, response(500, "", Header{}), begin.Add(hour))
		s := o.Decide(r, 0, begin.Add(hour))
		assert.True(t, s.Kind == DecisionHold && r.Rules("x").DisallowsAll(), "%d, then 500: decision %+v", status, s)
	}
	r, _ := o.Next(Record{}, response(404, "", Header{}), begin)
	assert.True(t, r.Class == ClassUnavailable, "404: %+v", r)
}

func TestNextRedirect(t *testing.T) {
	o := DefaultOptions()
	tests := []struct {
		name, location string
		status, hops   int
		target         string // empty: unavailable
	}{
		{"301 to another host", "https://other.example.net/robots.txt", 301, 0, "https://other.example.net/robots.txt"},
		{"302", "https://other.example.net/r", 302, 1, "https://other.example.net/r"},
		{"303", "/r", 303, 2, "https://www.example.com/r"},
		{"307", "r?x#y", 307, 3, "https://www.example.com/r?x"},
		{"308, the fifth", "//cdn.example.com/robots.txt", 308, 4, "https://cdn.example.com/robots.txt"},
		{"to http", "http://www.example.com/robots.txt", 301, 0, "http://www.example.com/robots.txt"},
		{"the sixth", "https://other.example.net/robots.txt", 301, 5, ""},
		{"to itself", robotsURL, 301, 0, ""},
		{"to itself, otherwise written", "HTTPS://WWW.example.com:443/robots.txt#x", 301, 0, ""},
		{"no Location", "", 301, 0, ""},
		{"ftp", "ftp://www.example.com/robots.txt", 301, 0, ""},
		{"javascript", "javascript:alert(1)", 301, 0, ""},
		{"no URL", "http://[::1", 301, 0, ""},
		{"very long", "/" + strings.Repeat("x", 5000), 301, 0, ""},
	}
	for _, tt := range tests {
		out := Outcome{URL: robotsURL, Redirects: tt.hops, Status: tt.status, Header: Header{Location: tt.location}}
		r, action := o.Next(good(), out, begin.Add(hour))
		if tt.target == "" && r.Failure == FailureUnconfirmed {
			r, action = o.Next(r, out, r.Refresh)
		}
		if tt.target != "" {
			want := Action{Kind: ActionRedirect, URL: tt.target, Redirects: tt.hops + 1}
			assert.True(t, action == want && reflect.DeepEqual(r, good()),
				"%s: %+v, %+v, want %+v and the record as it was", tt.name, r, action, want)
			continue
		}
		assert.True(t, action.Kind == ActionDone && r.Class == ClassUnavailable &&
			r.Rules("amble").Match("/private").Allowed, "%s: %+v, %+v", tt.name, r, action)
	}
}

// TestNextRedirectChain follows a chain over hosts: the rules count for the first origin.
func TestNextRedirectChain(t *testing.T) {
	o := DefaultOptions()
	record, next := Record{}, Action{URL: robotsURL}
	for i := range 5 {
		out := Outcome{URL: next.URL, Redirects: next.Redirects, Status: 301}
		out.Header.Location = fmt.Sprintf("https://h%d.example.net/robots.txt", i)
		record, next = o.Next(record, out, begin)
		must.True(t, next.Kind == ActionRedirect && next.Redirects == i+1 && record.Class == ClassNone,
			"hop %d: %+v, %+v", i, record, next)
	}
	record, next = o.Next(record, Outcome{URL: next.URL, Redirects: next.Redirects, Status: 200, Body: rulesBody,
		Header: Header{ETag: `"x"`}}, begin)
	must.True(t, next.Kind == ActionDone && record.FinalURL == "https://h4.example.net/robots.txt" &&
		record.Redirects == 5, "%+v, %+v", record, next)
	assert.True(t, !record.Rules("amble").Match("/private").Allowed, "the rules behind the redirects do not count")
	etag, _ := record.Validators(robotsURL)
	assert.True(t, etag == "", "the validators of another URL are sent to the first")
	if etag, _ := record.Validators(record.FinalURL); etag != `"x"` {
		t.Errorf("validator %q", etag)
	}
}

func TestNextNotModified(t *testing.T) {
	o := DefaultOptions()
	prev, _ := o.Next(Record{}, response(200, string(rulesBody),
		Header{ETag: `"1"`, LastModified: "Fri, 20 Nov 2026 00:00:00 GMT", CacheControl: "max-age=3600"}), begin)
	etag, modified := prev.Validators(robotsURL)
	must.True(t, etag == `"1"` && modified == "Fri, 20 Nov 2026 00:00:00 GMT", "validators %q %q", etag, modified)
	down, _ := o.Next(prev, response(503, "", Header{}), begin.Add(50*minute))
	for name, before := range map[string]Record{"fresh": prev, "after a failure": down} {
		r, _ := o.Next(before, response(304, "", Header{}), begin.Add(hour))
		assert.True(t, r.Class == ClassFound && string(r.Body) == string(rulesBody) &&
			r.Expires.Sub(r.Fetched) == hour && r.Fetched.Equal(begin.Add(hour)) && r.Failures == 0 &&
			r.FirstUnreachable.IsZero() && r.ETag == `"1"`, "%s: %+v", name, r)
	}
	r, _ := o.Next(prev, response(304, "", Header{CacheControl: "max-age=7200", ETag: `"2"`}), begin.Add(hour))
	assert.True(t, r.Expires.Sub(r.Fetched) == 2*hour && r.ETag == `"2"`, "headers of the 304 do not count: %+v", r)
	// A 304 from a URL that was requested without validators means nothing, and the next request
	// must be a plain one.
	r, _ = o.Next(prev, Outcome{URL: "https://other.example/robots.txt", Status: 304}, begin.Add(hour))
	if etag, modified := r.Validators(robotsURL); r.Class != ClassUnreachable || etag+modified != "" ||
		r.Copy != ClassFound {
		t.Errorf("304 out of place: %+v", r)
	}
}

// TestNextConfirms: what would end the rules of a good file counts when the next response, an hour
// later, agrees. Until then the good file stays in force.
func TestNextConfirms(t *testing.T) {
	const html, empty = "<!doctype html>\n<p>Hello\n<script>f({\n  userAgent: navigator.userAgent,\n  host: h,\n})</script>", ""
	wall := Outcome{URL: robotsURL, Status: 200, Body: []byte(html), Failure: FailureWall}
	tests := []struct {
		name   string
		later  []Outcome // the next responses, each when it is due
		class  Class     // after the last of them
		allows bool      // what the good file does not
	}{
		{"a page", []Outcome{response(200, html, Header{})}, ClassUnreachable, false},
		{"a page twice", []Outcome{response(200, html, Header{}), response(200, html, Header{})}, ClassNotRobots, true},
		{"nothing, with 202", []Outcome{response(202, empty, Header{})}, ClassUnreachable, false},
		{"nothing twice", []Outcome{response(200, empty, Header{}), response(200, "# none", Header{})},
			ClassFound, true},
		{"a refusal", []Outcome{response(403, html, Header{})}, ClassUnreachable, false},
		{"a refusal twice", []Outcome{response(403, html, Header{}), response(403, html, Header{})},
			ClassUnavailable, true},
		{"a page, a refusal", []Outcome{response(200, html, Header{}), response(403, html, Header{})},
			ClassUnreachable, false},
		{"a page, a failure, a page", []Outcome{response(200, html, Header{}), response(500, html, Header{}),
			response(200, html, Header{})}, ClassUnreachable, false},
		{"a page, then the file", []Outcome{response(200, html, Header{}), response(200, string(rulesBody), Header{})},
			ClassFound, false},
		{"a loop of redirects", []Outcome{response(302, empty, Header{Location: robotsURL})}, ClassUnreachable, false},
		{"gone", []Outcome{response(404, html, Header{})}, ClassUnavailable, true},
		{"gone for good", []Outcome{response(410, html, Header{})}, ClassUnavailable, true},
		{"other rules", []Outcome{response(200, "User-agent: *\nAllow: /", Header{})}, ClassFound, true},
		{"a wall, again and again", []Outcome{wall, wall, wall, wall, wall}, ClassUnreachable, false},
		{"a wall, then a page", []Outcome{wall, response(200, html, Header{})}, ClassUnreachable, false},
	}
	o := DefaultOptions()
	for _, tt := range tests {
		r, now := good(), begin.Add(20*hour)
		for _, out := range tt.later {
			r, _ = o.Next(r, out, now)
			if r.Class == ClassUnreachable {
				if s := o.Decide(r, 0, now); s.Kind == DecisionMatch && !s.Until.Equal(begin.Add(day)) {
					t.Errorf("%s: the good file counts until %v", tt.name, s.Until)
				}
			}
			assert.True(t, r.Failure != FailureUnconfirmed || r.Refresh.Sub(now) == hour,
				"%s: fetched again after %v", tt.name, r.Refresh.Sub(now))
			now = r.Refresh
		}
		assert.True(t, r.Class == tt.class && r.Rules("amble").Match("/private").Allowed == tt.allows, "%s: %+v",
			tt.name, r)
	}
	early, _ := o.Next(good(), response(200, html, Header{}), begin.Add(20*hour))
	r, _ := o.Next(early, response(200, html, Header{}), early.Refresh.Add(-1))
	assert.True(t, r.Class == ClassUnreachable, "a second response before its time counts: %+v", r)
	bare, _ := o.Next(Record{}, response(200, "# no rules\n", Header{}), begin)
	if r, _ := o.Next(bare, response(403, "", Header{}), begin.Add(20*hour)); r.Class != ClassUnavailable {
		t.Errorf("a file without a record has to be confirmed as gone: %+v", r)
	}
	if r, _ := o.Next(good(), Outcome{Status: 503, Failure: FailureWall, Header: Header{RetryAfter: "7200"}},
		begin); r.Refresh.Sub(begin) != 2*hour {
		t.Errorf("a wall that demands to be left alone for 2 hours: %v", r.Refresh.Sub(begin))
	}
}

// TestContentOf tells a robots.txt from what else stands under its name.
func TestContentOf(t *testing.T) {
	for body, want := range map[string]Content{
		"": ContentEmpty, "\xEF\xBB\xBF\n": ContentEmpty, "# Making sure you're not a bot!\n\n": ContentEmpty,
		"User-agent: *":                                    ContentFile,
		"Protected by Anubis\nDisallow: /a":                ContentFile,
		"Sitemap: /s.xml":                                  ContentFile,
		"<pre>\nUser-agent: *\nDisallow: /a\n</pre>":       ContentFile,
		"<pre>\nUseragent: *\nDisallow: /a\n</pre>":        ContentFile,
		" \n<html>\n<script>\nhost: h,\nuserAgent: u,\n":   ContentOther,
		"<html>\n<script>\nallow: false,\ndisallow: [],\n": ContentOther,
		"<p>nothing": ContentOther, `{"error": 404}`: ContentOther, "not here": ContentOther,
	} {
		assert.Equal(t, ContentOf([]byte(body)), want, body)
	}
}

func TestNextCutsBody(t *testing.T) {
	o := DefaultOptions()
	long := strings.Repeat("Disallow: /aaaaaaaaaaaaaaaaaa\n", MaxBody/30+100)
	tests := []struct {
		name string
		out  Outcome
		end  string
	}{
		{"long body", response(200, "User-agent: *\n"+long, Header{}), "aaa\n"},
		{"cut by the fetcher", Outcome{URL: robotsURL, Status: 200,
			Body: []byte("User-agent: *\nDisallow: /x\nDisallow: /part"), Truncated: true}, "/x\n"},
		{"UTF-16", Outcome{URL: robotsURL, Status: 200, Body: utf16Of("User-agent: *\nDisallow: /x\nDisallow: /part"),
			Truncated: true}, "/x\n"},
		{"one endless line", response(200, "User-agent: *\nDisallow: /"+strings.Repeat("a", MaxBody), Header{}),
			"User-agent: *\n"},
		{"a long line at the limit",
			response(200, "User-agent: *\nDisallow: /"+strings.Repeat("a", leastRead)+"\n# more\n",
				Header{}), "aaa\n"},
	}
	for _, tt := range tests {
		r, _ := o.Next(Record{}, tt.out, begin)
		if !r.Cut || len(r.Body) > MaxBody || !strings.HasSuffix(string(r.Body), tt.end) || r.Class != ClassFound {
			t.Errorf("%s: cut %v, %d octets, ends %q", tt.name, r.Cut, len(r.Body), r.Body[max(0, len(r.Body)-40):])
		}
	}
}

func TestNextDropsLongValidators(t *testing.T) {
	r, _ := DefaultOptions().Next(Record{}, response(200, string(rulesBody), Header{ETag: strings.Repeat("e", 5000)}),
		begin)
	assert.Equal(t, r.ETag, "", "an etag of", len(r.ETag), "octets is kept")
	must.Get(r.AppendBinary(nil))(t)
}

// TestRefreshIsNeverEarly: stored times have milliseconds, and clocks are finer. That never
// shortens the time between a response and the next request for the file.
func TestRefreshIsNeverEarly(t *testing.T) {
	o := DefaultOptions()
	o.ForbiddenDenies = true
	answer := func(status int, h Header) Outcome {
		return Outcome{URL: "http://a.test/robots.txt", Status: status, Header: h}
	}
	for _, fraction := range []time.Duration{0, 1, 300 * time.Microsecond, 999_999} {
		now := begin.Add(fraction)
		for _, tt := range []struct {
			out   Outcome
			least time.Duration
		}{
			{answer(200, Header{CacheControl: "max-age=1000"}), 800 * time.Second},
			{answer(403, Header{CacheControl: "max-age=1000"}), 800 * time.Second},
			{answer(500, Header{}), o.MinRetry},
			{answer(429, Header{RetryAfter: "300"}), 300 * time.Second},
			{Outcome{URL: "http://a.test/robots.txt", Failure: FailureConnect}, o.MinRetry},
		} {
			r, _ := o.Next(Record{}, tt.out, now)
			if wait := r.Refresh.Sub(now); wait < tt.least || wait >= tt.least+time.Millisecond {
				t.Errorf("status %d, %v after a millisecond: fetched again after %v, want %v",
					tt.out.Status, fraction, wait, tt.least)
			}
			assert.True(t, storable(r.Refresh).Equal(r.Refresh) && !r.Fetched.After(now),
				"status %d: %+v is not what comes back from the disk", tt.out.Status, r)
		}
	}
}
