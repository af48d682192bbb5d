package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// remote is a fetcher that works over the API.
type farm struct {
	t    *testing.T
	s    *Server
	name string
	web  *testweb.Web
}

// call sends a request with the token of fetchers.
func (f *farm) call(method, path string, body any) (status int, text string) {
	f.t.Helper()
	encoded := must.Get(json.Marshal(body))(f.t)
	response, text := send(f.t, f.s, method, "/api/v1"+path, bytes.NewReader(encoded), "Authorization",
		"Bearer fetcher",
		"Content-Type", "application/json")
	return response.StatusCode, text
}

// lease takes leases.
func (f *farm) lease(n int) (leases []Lease) {
	f.t.Helper()
	status, text := 503, ""
	for deadline := time.Now().Add(time.Minute); status == 503 && time.Now().Before(deadline); {
		status, text = f.call("POST", "/leases", map[string]any{"fetcher": f.name, "n": n, "wait": 5}) // 503: it starts
	}
	must.True(f.t, status == 200, "leases: %d %s", status, text)
	lines := json.NewDecoder(strings.NewReader(text))
	for {
		var l Lease
		if err := lines.Decode(&l); err == io.EOF {
			return leases
		} else if err != nil {
			f.t.Fatal(err)
		}
		leases = append(leases, l)
	}
}

// fetch makes the request of a lease, and returns its report.
func (f *farm) fetch(l *Lease) Report {
	f.t.Helper()
	request := must.Get(http.NewRequest("GET", l.URL, nil))(f.t)
	for name, value := range l.Headers {
		request.Header.Set(name, value)
	}
	started := time.Now()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(l.Address, fmt.Sprint(f.web.Port())))
	}}
	defer transport.CloseIdleConnections()
	response := must.Get(transport.RoundTrip(request))(f.t)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(f.t)
	text := string(body)
	return Report{ID: l.ID, Fetcher: f.name, Status: response.StatusCode, Body: &text,
		Headers: map[string]string{"Content-Type": response.Header.Get("Content-Type")},
		Took:    time.Since(started).Seconds()}
}

// TestFetchersOverTheAPI: a fetcher crawls by the API alone, with single reports and lists. Its token
// opens nothing else.
func TestFetchersOverTheAPI(t *testing.T) {
	r := startCrawl(t, func(o *crawl.Options) { o.Workers = 0 })
	f := &farm{t: t, s: r.server, name: "farm-1", web: r.web}
	fetched, single := 0, true
	for deadline := time.Now().Add(2 * time.Minute); fetched < 4 && time.Now().Before(deadline); single = !single {
		var reports []Report
		for _, l := range f.lease(10) {
			assert.True(t, l.Headers["User-Agent"] == "amble-test" && !(l.Seconds <= 0) && l.Address != "", "lease %+v",
				l)
			reports = append(reports, f.fetch(&l))
		}
		fetched += len(reports)
		if !single {
			f.reportAll(reports)
			continue
		}
		for _, report := range reports {
			id := report.ID
			if status, text := f.call("PATCH", "/leases/"+string(id),
				map[string]any{"fetcher": f.name}); status != 200 {
				t.Errorf("extend: %d %s", status, text)
			}
			status, text := f.call("POST", "/leases/"+string(id), report)
			assert.True(t, status == 200, "report: %d %s", status, text)
			if status, text := f.call("POST", "/leases/"+string(id), report); status != 409 {
				t.Errorf("report again: %d %s", status, text)
			}
		}
	}
	pages := r.web.Requests().Pages()
	if len(pages) != 4 { // /, /1, /2 and /missing of a.test; b.test has a long delay
		t.Errorf("%d pages, want 4: %v", len(pages), pages)
	}
	for _, path := range []string{"/status", "/urls", "/fetchers"} {
		status, _ := f.call("GET", path, nil)
		assert.True(t, status == 403, "GET %s with the token of fetchers: %d, want 403", path, status)
	}
	var may []string
	text := ""
	// the delay has to be over
	for deadline := time.Now().Add(time.Minute); len(may) == 0 && time.Now().Before(deadline); {
		may, text = f.check(r.web.URL("a.test", "/1"), r.web.URL("a.test", "/2"), r.web.URL("a.test", "/private"),
			r.web.URL("b.test", "/1"), "http://stranger.test/")
	}
	assert.Equal(t, strings.Join(may, " "), "a.test/1", "may be requested", text)
	fetchers, err := r.client.Fetchers(t.Context())
	assert.True(t, err == nil && len(fetchers) == 1 && fetchers[0].Reported == 4 && fetchers[0].Leases == 0,
		"fetchers %+v, %v", fetchers, err)
	must.Do(t, r.client.SetCutOff(t.Context(), f.name, true))
	if status, text := f.call("POST", "/leases", map[string]any{"fetcher": f.name}); status != 403 {
		t.Errorf("a fetcher that is cut off: %d %s", status, text)
	}
	must.Do(t, r.client.SetCutOff(t.Context(), f.name, false))
	if status, text := f.call("POST", "/leases", map[string]any{"fetcher": f.name}); status != 200 {
		t.Errorf("a fetcher that is admitted: %d %s", status, text)
	}
}

// check returns which of the URLs may be requested now, as host and path, and takes them.
func (f *farm) check(urls ...string) (may []string, text string) {
	f.t.Helper()
	status, text := f.call("POST", "/check", map[string]any{"take": true, "urls": urls})
	var checks checkList
	must.True(f.t, json.Unmarshal([]byte(text), &checks) == nil && status == 200, "check: %d %s", status, text)
	for _, c := range checks.Results {
		if c.May {
			u := must.Get(url.Parse(c.URL))(f.t)
			may = append(may, u.Hostname()+u.Path)
		}
	}
	return may, text
}

// reportAll reports a list.
func (f *farm) reportAll(reports []Report) {
	f.t.Helper()
	var list bytes.Buffer
	for i := range reports {
		line := must.Get(json.Marshal(&reports[i]))(f.t)
		fmt.Fprintf(&list, "%s\n", line)
	}
	list.WriteString("{broken\n")
	response, text := send(f.t, f.s, "POST", "/api/v1/reports", &list, "Authorization", "Bearer fetcher",
		"Content-Type", JSONLines)
	must.True(f.t, response.StatusCode == 200, "reports: %d %s", response.StatusCode, text)
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); n++ {
		var result ReportResult
		must.Do(f.t, json.Unmarshal(lines.Bytes(), &result))
		want := "accepted"
		if n == len(reports) {
			want = "invalid"
		}
		assert.Equal(f.t, result.Result, want, "report", n, result)
	}
	assert.Equal(f.t, n, len(reports)+1, "results of", len(reports), "reports and a broken line")
}
