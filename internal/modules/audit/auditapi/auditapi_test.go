package auditapi

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// logged is a crawl that has only a request log and opt-outs.
type logged struct {
	server.Crawl
	dir  string
	read func() // called when the opt-outs are read
}

func (l logged) Status() crawl.Status { return crawl.Status{DataDir: l.dir, State: "running"} }

func (logged) Observe(crawl.Observer) {}

func (l logged) OptOuts() ([]crawl.OptOut, error) {
	l.read()
	return nil, nil
}

// writeLog writes requests for robots.txt, each this long after the end of the one before, with a delay of a second.
func writeLog(t *testing.T, dir, host string, gaps ...time.Duration) {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	log := must.Get(requestlog.Open(filepath.Join(dir, requestlog.DirName), requestlog.DefaultOptions(),
		requestlog.Process{Began: at, Boot: "boot", Agent: "amble", Tokens: []string{"amble"}}))(t)
	for _, gap := range gaps {
		at = at.Add(gap)
		q := requestlog.Request{URL: testkit.Parse(t, "http://"+host+"/robots.txt"), Kind: requestlog.Robots,
			Sent: true, Address: netip.MustParseAddr("192.0.2.1"), Status: 404, Delay: time.Second, Start: at, End: at}
		must.Do(t, log.Add(&q))
	}
	must.Do(t, log.Close())
}

// serve starts the API of a crawl, and returns what gets a path of it.
func serve(t *testing.T, c logged) func(path string) (*http.Response, string) {
	t.Helper()
	s := must.Get(server.Start(server.Options{Listen: "127.0.0.1:0", DataDir: c.dir, Now: time.Now,
		Operations: []server.Operations{Register}}, c))(t)
	t.Cleanup(func() {
		err := s.Close(t.Context())
		assert.True(t, err == nil || errors.Is(err, t.Context().Err()), "%v", err)
	})
	return func(path string) (*http.Response, string) {
		response, err := http.Get("http://" + s.Address() + server.BasePath + path)
		if err != nil {
			t.Error(err)
			return &http.Response{}, ""
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		assert.NoError(t, err)
		return response, string(body)
	}
}

// The audit has a line for each request of a host, and counts the violations.
func TestAudit(t *testing.T) {
	c := logged{dir: t.TempDir(), read: func() {}}
	writeLog(t, c.dir, "a.test", time.Second, 2*time.Second, time.Millisecond)
	get := serve(t, c)
	response, body := get("/audit?host=A.test")
	if n := strings.Count(body, "\n"); n != 3 || response.StatusCode != 200 ||
		response.Trailer.Get("Amble-Violations") != "1" || response.Trailer.Get("Amble-Damaged") != "0" ||
		response.Header.Get("Content-Type") != server.JSONLines || !strings.Contains(body, `"kind":"robots"`) {
		t.Errorf("%d lines, %d, %v: %s", n, response.StatusCode, response.Trailer, body)
	}
	for path, status := range map[string]int{
		"/audit?host=b.test": 200, "/audit?since=" + time.Now().UTC().Format(time.RFC3339): 200,
		"/audit?since=x": 422, "/audit?since=": 422, "/audit?until=x": 422,
	} {
		if response, body := get(path); response.StatusCode != status || status == 200 && body != "" {
			t.Errorf("%s: %d, %s", path, response.StatusCode, body)
		}
	}
}

// TestConcurrentAudits: one audit runs at a time.
func TestConcurrentAudits(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	c := logged{dir: t.TempDir(), read: func() {
		close(began)
		<-end
	}}
	writeLog(t, c.dir, "a.test", time.Second)
	get := serve(t, c)
	done := make(chan string)
	go func() {
		_, body := get("/audit")
		done <- body
	}()
	<-began
	response, body := get("/audit")
	assert.True(t, response.StatusCode == 503 && response.Header.Get("Content-Type") == "application/problem+json" &&
		strings.Contains(body, "another audit"), "a second audit at a time: %d, %s", response.StatusCode, body)
	close(end)
	assert.Equal(t, strings.Count(<-done, "\n"), 1)
}
