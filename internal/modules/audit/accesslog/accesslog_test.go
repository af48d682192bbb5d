package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func TestParse(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		line string
		want entry
		ok   bool
	}{
		{`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "GET /a?b=c HTTP/1.1" 200 512`,
			entry{target: "/a?b=c", status: 200}, true},
		{`192.0.2.7 - - [27/Nov/2026:14:00:00 +0200] "GET /a HTTP/2.0" 304 - "-" "amble/1 (+https://bot.test/)"`,
			entry{target: "/a", status: 304, agent: "amble/1 (+https://bot.test/)"}, true},
		{`www.test:443 2001:db8::1 - bob [27/Nov/2026:12:00:00 +0000] "GET /\x22q\" HTTP/1.1" 404 0 ` +
			`"http://x.test/\"" "a \"b\""`,
			entry{target: `/"q"`, status: 404, agent: `a "b"`}, true},
		{`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "POST /a HTTP/1.1" 200 512`, entry{}, false},
		{`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "-" 400 0`, entry{}, false},
		{`192.0.2.7 - - [yesterday] "GET / HTTP/1.1" 200 512`, entry{}, false},
		{`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" OK 512`, entry{}, false},
		{`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1`, entry{}, false},
		{``, entry{}, false},
	} {
		got, ok := parse(c.line)
		if ok != c.ok {
			t.Errorf("%s: %v", c.line, ok)
			continue
		}
		assert.True(t, !ok || got.at.Equal(at), "%s: at %v", c.line, got.at)
		got.at = time.Time{}
		assert.True(t, !ok || got == c.want, "%s: %+v, want %+v", c.line, got, c.want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "GET /\x22 HTTP/1.1" 200 512 "-" "a"`)
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := parse(line)
		assert.True(t, !ok || e.target != "" && e.status >= 100 && !e.at.IsZero(), "%q is %+v", line, e)
	})
}

func request(t *testing.T, text string, at time.Time, status int) *requestlog.Request {
	t.Helper()
	u := must.Get(weburl.Parse(text))(t)
	q := &requestlog.Request{URL: u, Start: at, End: at.Add(300 * time.Millisecond), Status: status, Sent: true}
	if status < 0 {
		q.Status, q.End = 0, time.Time{}
	}
	return q
}

// TestMatch: lines and requests that belong together are found by target, status and time, each once; what only one of
// the logs has is named.
func TestMatch(t *testing.T) {
	begin := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	line := func(second int, target string, status int, agent string) string {
		return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" %d 9 \"-\" \"%s\"\n",
			begin.Add(time.Duration(second)*time.Second).Format(timeLayout), target, status, agent)
	}
	log := line(0, "/other", 200, "Mozilla/5.0") +
		line(100, "/robots.txt", 200, "Amble/1 (+https://bot.test/)") +
		line(102, "/a", 200, "amble/1") +
		line(104, "/a", 200, "amble/1") + // twice in the access log, once in the request log
		line(106, "/b", 404, "amble/1") +
		line(108, "/c", 200, "amble/1") + // nobody requested it
		line(110, "/d", 500, "amble/1") + // the request log says 200
		line(112, "/killed", 200, "amble/1") +
		"nonsense\n" +
		line(200, "/other", 200, "Mozilla/5.0")
	m := must.Get(Read(strings.NewReader(log), Options{Host: "a.test", Product: "amble", Skew: 2 * time.Second}))(t)
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	for _, q := range []*requestlog.Request{
		request(t, "https://a.test/robots.txt", at(101), 200), // its clock is a second ahead
		request(t, "https://a.test/a", at(102), 200),
		request(t, "https://b.test/a", at(104), 200), // of another host
		request(t, "https://a.test/b", at(106), 404),
		request(t, "https://a.test/d", at(110), 200),
		request(t, "https://a.test/killed", at(112), -1),
		request(t, "https://a.test/hidden", at(120), 200), // the access log lacks it
		request(t, "https://a.test/hidden", at(999), 200), // after its end
	} {
		m.Add(q)
	}
	r := m.Report()
	var unknown, missing []string
	for _, d := range r.Unknown {
		unknown = append(unknown, fmt.Sprintf("%d %s", d.Line, d.Target))
	}
	for _, d := range r.Missing {
		missing = append(missing, d.Target)
	}
	assert.Equal(t, fmt.Sprint(unknown), "[4 /a 6 /c 7 /d]", "unknown")
	assert.Equal(t, fmt.Sprint(missing), "[/d /hidden]", "missing")
	assert.True(t, r.Matched == 4 && r.Lines == 10 && r.Unread == 1 && r.Uncertain == 0, "%+v", r)
}

// TestLongLine: a line of any length costs no memory.
func TestLongLine(t *testing.T) {
	log := strings.Repeat("x", 3*maxLine) + "\n" +
		`192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 512` + "\n"
	m, err := Read(strings.NewReader(log), Options{})
	assert.True(t, err == nil && m.report.Lines == 2 && m.report.Unread == 1 && len(m.entries) == 1, "%+v, %v", m, err)
}
