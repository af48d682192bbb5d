package testweb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// finished waits until the server has finished all that it recorded.
func finished(t *testing.T, web *Web) Log {
	t.Helper()
	for range 60_000 { // five minutes: the machine may be busy
		log := web.Requests()
		if len(log.Filter(func(q Request) bool { return !q.Done })) == 0 {
			return log
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("requests are still in flight")
	return nil
}

func TestRecordHasTheRequest(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Routes{"/p?q=1": Page("P")}}}})
	client := newClient(t, web)
	request := must.Get(http.NewRequest(http.MethodHead, web.URL("a.test", "/p?q=1"), nil))(t)
	request.Header.Set("User-Agent", "amble/1")
	request.Header.Set("If-None-Match", `"x"`)
	request.Header.Set("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")
	response := must.Get(client.Do(request))(t)
	_ = response.Body.Close()
	get(t, client, web.URL("a.test", "/missing"))

	log := finished(t, web)
	must.True(t, len(log) == 2, "%d requests recorded, want 2", len(log))
	got := log[0]
	assert.True(t, got.Bytes != 0 && !got.Start.IsZero() && !got.End.Before(got.Start), "bytes %d, start %v, end %v",
		got.Bytes, got.Start, got.End)
	got.Start, got.End, got.Bytes = time.Time{}, time.Time{}, 0
	want := Request{
		Host: "a.test", Address: web.Address("a.test").String(), Conn: 1, Method: "HEAD", Path: "/p?q=1",
		UserAgent:   "amble/1",
		IfNoneMatch: `"x"`, IfModifiedSince: "Sat, 01 Jan 2000 00:00:00 GMT", Status: 200, Done: true,
	}
	assert.Equal(t, got, want, "recorded")
	assert.True(t, log[1].Status == 404 && log[1].Conn == 1,
		"second request: status %d on connection %d, want 404 on 1", log[1].Status, log[1].Conn)
}

// No measured gap is shorter than the one that the client left, for any size of the response and
// any connection. The package comment promises that.
func TestMeasuredTimesLieWithinTheClients(t *testing.T) {
	big := Content("text/plain", []byte(strings.Repeat("a long body ", 100_000)))
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Routes{
		"/": Page("A"), "/big": big, "/slow": Slow(10*time.Millisecond, Page("slow")), "/none": Status(204),
		"/reset": Reset(), "/cut": Cut("text/html", []byte("<p>")),
	}}}})
	for _, reuse := range []bool{true, false} {
		client := newClient(t, web)
		client.Transport.(*http.Transport).DisableKeepAlives = !reuse
		for _, path := range []string{"/", "/big", "/", "/slow", "/none", "/reset", "/cut", "/"} {
			before := len(web.Requests())
			started := time.Now()
			get(t, client, web.URL("a.test", path))
			ended := time.Now()
			within(t, web, web.Requests()[before:], started, ended)
		}
	}
}

// within checks that requests were recorded and lie between two times. There may be several:
// net/http sends a request again when a reused connection is reset.
func within(t *testing.T, web *Web, log Log, started, ended time.Time) {
	t.Helper()
	assert.Not(t, len(log), 0, "nothing was recorded")
	offset := func(x time.Time) time.Duration { return x.Sub(web.recorder.base) }
	for _, q := range log {
		// The record's base has wall-clock time only, so the test compares offsets.
		start, end := q.Start.Sub(web.recorder.base.Round(0)), q.End.Sub(web.recorder.base.Round(0))
		assert.True(t, start >= offset(started) && end <= offset(ended) && end >= start,
			"%s on connection %d: recorded from %v to %v, the client saw %v to %v", q.Path, q.Conn, start, end,
			offset(started), offset(ended))
	}
}

func TestStatusIsTheOneOnTheWire(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Routes{
		"/reset":    Reset(),
		"/cut":      Cut("text/html", []byte(strings.Repeat("half ", 10_000))),
		"/gone":     Status(410),
		"/busy":     RetryAfter(503, "7"),
		"/moved":    Redirect(301, "//b.test/x"),
		"/sometime": Flaky(1, Status(500), Page("well")),
	}}}})
	client := newClient(t, web)
	for _, c := range []struct {
		path         string
		seen, served int
	}{
		{"/reset", 0, 0}, {"/cut", 0, 200}, {"/gone", 410, 410}, {"/busy", 503, 503},
		{"/moved", 301, 301}, {"/sometime", 500, 500}, {"/sometime", 200, 200},
	} {
		response, _ := get(t, client, web.URL("a.test", c.path))
		log := finished(t, web).Path(c.path)
		got := log[len(log)-1].Status
		assert.True(t, response.StatusCode == c.seen && got == c.served,
			"%s: client saw %d, recorded %d; want %d and %d", c.path, response.StatusCode, got, c.seen, c.served)
		switch c.path {
		case "/busy":
			assert.Equal(t, response.Header.Get("Retry-After"), "7", "Retry-After")
		case "/moved":
			assert.Equal(t, response.Header.Get("Location"), strings.TrimPrefix(web.URL("b.test", "/x"), "http:"),
				"Location")
		}
	}
}

func TestClientThatLeavesIsAborted(t *testing.T) {
	begun := make(chan struct{})
	web := start(t, Config{Sites: []Site{{Host: "a.test",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			Slow(time.Hour, Page("never")).ServeHTTP(w, r)
		})}}})
	client := newClient(t, web)
	ctx, cancel := context.WithCancel(context.Background())
	request := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, web.URL("a.test", "/"), nil))(t)
	go func() {
		<-begun
		cancel()
	}()
	_, err := client.Do(request)
	must.True(t, errors.Is(err, context.Canceled), "client got %v, want its own cancellation", err)
	log := finished(t, web)
	assert.True(t, len(log) == 1 && log[0].Aborted, "recorded %+v, want one aborted request", log)
}

// TestSettle: everything that clients sent before they left is in the record. Settle waits for
// clients that stay.
func TestSettle(t *testing.T) {
	const clients = 200
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Page("A")}, {Host: "b.test"}}})
	for range clients {
		c, err := net.Dial("tcp", net.JoinHostPort(web.Address("a.test").String(), strconv.Itoa(int(web.Port()))))
		must.Do(t, err)
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		err = errors.Join(err, c.Close())
		must.True(t, err == nil, "%v", err)
	}
	must.Do(t, web.Settle(t.Context()))
	for _, q := range web.Requests() {
		assert.True(t, q.Done, "%+v", q)
	}
	assert.Equal(t, len(web.Requests()), clients, "requests are in the record")
	get(t, newClient(t, web), web.URL("a.test", "/")) // and stays
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.Is(t, web.Settle(ctx), context.DeadlineExceeded, "with a client that stays")
}

func TestRequestInFlightIsInTheRecord(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Routes{
		"/long": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-end }),
		"/":     Page("A"),
	}}}})
	client := newClient(t, web)
	var wait sync.WaitGroup
	wait.Go(func() { get(t, client, web.URL("a.test", "/long")) })
	<-begun
	get(t, client, web.URL("a.test", "/"))
	log := web.Requests()
	close(end)
	wait.Wait()
	assert.True(t, log[0].Path == "/long" && !log[0].Done && log.MaxInFlight() == 2 && len(log.ShortGaps(0)) == 1,
		"snapshot during a request: %+v; want /long unfinished and two in flight", log)
}

func TestRecordIsBounded(t *testing.T) {
	web := start(t, Config{MaxRequests: 3, Sites: []Site{{Host: "a.test", Handler: Page("A")}}})
	client := newClient(t, web)
	for range 5 {
		get(t, client, web.URL("a.test", "/"+strings.Repeat("x", 2*maxRecordedPath)))
	}
	log := web.Requests()
	assert.True(t, len(log) == 3 && web.Dropped() == 2 && web.Served() == 5 && len(log[0].Path) == maxRecordedPath,
		"kept %d, dropped %d, served %d, path of %d bytes; want 3, 2, 5, %d", len(log), web.Dropped(), web.Served(),
		len(log[0].Path), maxRecordedPath)
}

func TestRecordOfManyClientsAtOnce(t *testing.T) {
	const clients, each = 8, 50
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Page("A")}, {Host: "b.test", Handler: Page("B")}}})
	var wait sync.WaitGroup
	for range clients {
		client := newClient(t, web)
		wait.Go(func() {
			for i := range each {
				get(t, client, web.URL([]string{"a.test", "b.test"}[i%2], "/"))
				web.Requests()
			}
		})
	}
	wait.Wait()
	log := finished(t, web)
	assert.True(t, len(log) == clients*each && len(log.Host("a.test")) == len(log)/2,
		"%d requests, %d of a.test; want %d and half of it", len(log), len(log.Host("a.test")), clients*each)
	assert.AtMost(t, log.MaxInFlight(), clients, "in flight from clients")
	assert.Equal(t, len(log.Filter(func(q Request) bool { return q.Status != 200 || q.Aborted })), 0,
		"not plainly answered")
}

func TestSave(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Page("A")}}})
	client := newClient(t, web)
	for range 3 {
		get(t, client, web.URL("a.test", "/ä?b=<c>"))
	}
	log := finished(t, web)
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	must.Do(t, log.Save(file))
	text := must.Get(os.ReadFile(file))(t)
	var loaded Log
	for line := range bytes.Lines(text) {
		var q Request
		must.Do(t, json.Unmarshal(line, &q))
		loaded = append(loaded, q)
	}
	loaded.sort()
	for i := range log { // the same instant, not the same time.Location
		assert.True(t, log[i].Start.Equal(loaded[i].Start) && log[i].End.Equal(loaded[i].End),
			"times %v %v became %v %v", log[i].Start, log[i].End, loaded[i].Start, loaded[i].End)
		loaded[i].Start, loaded[i].End = log[i].Start, log[i].End
	}
	assert.Deep(t, log, loaded, "saved loaded")
	assert.True(t, log.Save(filepath.Join(t.TempDir(), "none", "none")) != nil, "a folder that is not there: no error")
}

func TestSlowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := newResponse()
		Slow(3*time.Second, Status(204)).ServeHTTP(w, newRequest(t))
		if waited := time.Since(began); waited != 3*time.Second || w.Code != 204 {
			t.Errorf("waited %v, status %d; want 3s and 204", waited, w.Code)
		}
	})
}
