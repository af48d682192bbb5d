package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// order sends an order, which has to be followed.
func (r *running) command(t *testing.T, path, body string) string {
	t.Helper()
	response, text := r.read(t, "POST", path, strings.NewReader(body), "Content-Type", "application/json")
	must.True(t, response.StatusCode == 200, "%s %s: %d, %s", path, body, response.StatusCode, text)
	return text
}

func (r *running) hostStory(t *testing.T, name string) (h inspect.HostStory) {
	t.Helper()
	_, body := r.read(t, "GET", "/api/v1/hosts/"+name, nil)
	must.Do(t, json.Unmarshal([]byte(body), &h), body)
	return h
}

func (r *running) add(t *testing.T, paths ...string) {
	t.Helper()
	var list strings.Builder
	for _, path := range paths {
		list.WriteString(r.web.URL("a.test", path) + "\n")
	}
	if response, body := r.read(t, "POST", "/api/v1/urls",
		strings.NewReader(list.String())); response.StatusCode != 200 {
		t.Fatalf("%d, %s", response.StatusCode, body)
	}
}

// requests counts the requests for a path, at the server.
func (r *running) requests(path string) int {
	return len(r.web.Requests().Path(path))
}

// resumes sends a command that ends a pause, and waits for the page that the pause has held back. The
// server must not see a request for it before the command.
func (r *running) resumes(t *testing.T, command, path string) {
	t.Helper()
	resumed := time.Now()
	r.command(t, command, "")
	r.eventually(t, "the page", func() bool { return r.requests(path) == 1 })
	if q := r.web.Requests().Path(path)[0]; q.Start.Before(resumed) {
		t.Errorf("%s was requested %v before the end of the pause", path, resumed.Sub(q.Start))
	}
}

func (r *running) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) { // the machine may be busy
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for %s; the crawl is %+v", what, r.server.only.Status())
		}
	}
}

// inspectsAgain waits until the dispatcher has reported its status again, which it does each
// second, and no request is in flight.
func (r *running) inspectsAgain(t *testing.T) {
	t.Helper()
	since := time.Now()
	r.eventually(t, "a newer status", func() bool {
		at := r.server.only.Status()
		return at.At.After(since) && at.InFlight == 0
	})
}

// While the crawl is paused the server sees nothing; then it goes on.
func TestPauseAndResumeTheCrawl(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	assert.Contains(t, r.command(t, "/api/v1/crawl/pause", ""), `"state":"`)
	r.add(t, "/new")
	r.inspectsAgain(t)
	assert.AtMost(t, r.requests("/new"), 0, "a page was fetched while the crawl was paused")
	r.eventually(t, "the state", func() bool { return r.server.only.Status().State == "paused" })
	response, body := r.read(t, "GET", "/readyz", nil)
	assert.True(t, response.StatusCode == 200, "a paused crawl is not ready: %s", body)
	r.resumes(t, "/api/v1/crawl/resume", "/new")
}

func TestDrainAndStopTheCrawl(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	assert.Contains(t, r.command(t, "/api/v1/crawl/drain", ""), "draining")
	if response, body := r.read(t, "POST", "/api/v1/urls",
		strings.NewReader("http://a.test/x\n")); response.StatusCode != 409 {
		t.Errorf("URLs while it drains: %d, %s", response.StatusCode, body)
	}
	assert.Contains(t, r.command(t, "/api/v1/crawl/resume", ""), "running")
	r.command(t, "/api/v1/crawl/stop", "")
	<-r.ended
	response, body := r.read(t, "POST", "/api/v1/crawl/pause", nil)
	assert.True(t, response.StatusCode == 503, "after the end: %d, %s", response.StatusCode, body)
	if response, _ := r.read(t, "GET", "/readyz", nil); response.StatusCode != 503 {
		t.Errorf("a crawl that has ended is ready: %d", response.StatusCode)
	}
}

func TestHostCommands(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	r.command(t, "/api/v1/hosts/A.test/pause", "")
	r.add(t, "/1?paused")
	r.inspectsAgain(t)
	if h := r.hostStory(t, "a.test"); r.requests("/1?paused") > 0 || !h.Politeness.Paused {
		t.Errorf("%d requests; %+v", r.requests("/1?paused"), h.Politeness)
	}
	r.resumes(t, "/api/v1/hosts/a.test/resume", "/1?paused")

	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	r.command(t, "/api/v1/hosts/a.test/pause", `{"until": "`+until.Format(time.RFC3339)+`"}`)
	if h := r.hostStory(t, "a.test"); !h.Politeness.Until.Truncate(time.Second).Equal(until) {
		t.Errorf("until %v, want %v", h.Politeness.Until, until)
	}
	r.command(t, "/api/v1/hosts/a.test/pause", `{"seconds": 0.4}`)
	r.add(t, "/1?later")
	r.eventually(t, "the end of the pause", func() bool { return r.requests("/1?later") == 1 })

	r.command(t, "/api/v1/hosts/a.test/delay", `{"seconds": 30}`)
	assert.Equal(t, r.hostStory(t, "a.test").Politeness.Delay, 30, "the delay")
	r.add(t, "/1?a", "/1?b", "/1?c")
	assert.Contains(t, r.command(t, "/api/v1/hosts/a.test/drop", ""), `"dropped":3`)
	r.eventually(t, "the drop", func() bool { return r.hostStory(t, "a.test").Waiting == 0 })
	assert.Contains(t, r.command(t, "/api/v1/urls/delete", `{"host": "A.test", "before": "2001-01-01T00:00:00Z"}`),
		`"deleted":0,"done":true`)
	known := r.hostStory(t, "a.test").Known
	assert.Contains(t, r.command(t, "/api/v1/urls/delete", `{"host": "A.test"}`),
		fmt.Sprintf(`"deleted":%d,"done":true`, known))
	left := r.hostStory(t, "a.test").Known
	assert.True(t, left == 0 && known != 0, "%d of %d URLs are left", left, known)
	r.command(t, "/api/v1/hosts/a.test/delay", `{"seconds": 0}`)
	r.command(t, "/api/v1/hosts/a.test/forget", "")
	r.add(t, "/1?forgotten")
	r.eventually(t, "robots.txt once more",
		func() bool { return r.requests("/robots.txt") >= 3 && r.requests("/1?forgotten") == 1 })
}

func TestInvalidCommands(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"/api/v1/hosts/none.test/pause", "", 404}, {"/api/v1/hosts/none.test/drop", "", 404},
		{"/api/v1/hosts/a.test/pause", `{"until": "tomorrow"}`, 422},
		{"/api/v1/hosts/a.test/pause", `{"seconds": -1}`, 422}, {"/api/v1/hosts/a.test/pause", `{"second": 1}`, 422},
		{"/api/v1/hosts/a.test/pause", `{`, 400},
		{"/api/v1/hosts/a.test/delay", "", 400}, {"/api/v1/hosts/a.test/delay", `{}`, 422},
		{"/api/v1/hosts/a.test/delay", `{"seconds": 1e300}`, 422},
		{"/api/v1/urls/delete", `{}`, 422}, {"/api/v1/urls/delete", `{"host": "a.test", "all": true}`, 422},
		{"/api/v1/urls/delete", `{"host": "none.test"}`, 404}, {"/api/v1/urls/delete", `{"before": "soon"}`, 422},
		{"/api/v1/hosts/a.test/burn", "", 404}, {"/api/v1/crawl/burn", "", 404},
	} {
		response, body := r.read(t, "POST", tt.path, strings.NewReader(tt.body), "Content-Type", "application/json")
		assert.Equal(t, response.StatusCode, tt.status, tt.path, tt.body, body)
	}
	response, _ := r.read(t, "GET", "/api/v1/crawl/stop", nil)
	assert.True(t, response.StatusCode == 405, "GET of an order: %d", response.StatusCode)
}

// fixedSettings are settings with one live key.
type fixedSettings struct{ workers float64 }

func (f *fixedSettings) Settings() []Setting {
	return []Setting{{Key: "crawl.workers", Value: f.workers, Source: "default", Live: true},
		{Key: "scope.include", Value: []string{}, Source: "API"}}
}

func (f *fixedSettings) Change(_ context.Context, patch []byte) ([]string, error) {
	var p struct{ Crawl struct{ Workers float64 } }
	if err := json.Unmarshal(patch, &p); err != nil || p.Crawl.Workers == 0 {
		return nil, Rejected{{"crawl.workers", "read 0; want 1 to 4096"}}
	}
	f.workers = p.Crawl.Workers
	return []string{"crawl.workers"}, nil
}

func (f *fixedSettings) Reload(context.Context, bool) (SettingsChange, error) {
	return SettingsChange{}, errors.Join(crawl.ErrNotRunning)
}

func TestSettings(t *testing.T) {
	f := &fixedSettings{workers: 64}
	s := start(t, Options{Settings: f})
	if _, body := request(t, s, "GET", "/api/v1/config", nil); !strings.Contains(body,
		`{"key":"crawl.workers","value":64,"source":"default","live":true}`) {
		t.Error(body)
	}
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"crawl": {"workers": 9}}`, 200, `{"changed":["crawl.workers"]}`},
		{`{"crawl": {"workers": 0}}`, 422,
			`"errors":[{"message":"read 0; want 1 to 4096","location":"body.crawl.workers"}]`},
		{`[]`, 422, "object"}, {`{`, 400, ""}, {"", 400, ""},
	} {
		response, body := send(t, s, "PATCH", "/api/v1/config", strings.NewReader(tt.body), "Content-Type",
			"application/merge-patch+json")
		assert.True(t, response.StatusCode == tt.status && strings.Contains(body, tt.want), "%s: %d, %s", tt.body,
			response.StatusCode, body)
	}
	assert.Equal(t, f.workers, 9, "workers")
	if response, body := request(t, s, "POST", "/api/v1/config/reload", nil); response.StatusCode != 503 {
		t.Errorf("%d, %s", response.StatusCode, body)
	}
}
