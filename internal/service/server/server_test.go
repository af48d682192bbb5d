package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedCrawl is a crawl that never moves.
type fixedCrawl struct{ status crawl.Status }

func (s fixedCrawl) Status() crawl.Status { return s.status }

var example = fixedCrawl{crawl.Status{State: "running", At: time.Unix(1_790_000_000, 0).UTC(), Hosts: 7,
	HostStates: map[string]int{"ready": 1}, URLs: map[string]int{"fetched": 3, "queued": 4},
	Requisites: map[string]int{"fetched": 2}, Errors: map[string]uint64{"crash": 2},
	Run: crawl.Rates{Yield: recrawl.Yield{Recrawls: 9, Unchanged: 8, UnchangedBytes: 4096}},
	Limits: crawl.Limits{MaxRate: 2.5, RateWait: 7.5, Bandwidth: 2048, HostBandwidth: 1024, BandwidthWait: 12,
		Received: 345}}}

// start starts a server that ends with the test.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := must.Get(Start(o, example))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, s.Close(ctx))
	})
	return s
}

// request sends a request and returns the answer, whose body is read.
func request(t *testing.T, s *Server, method, path string, header map[string]string) (*http.Response, string) {
	t.Helper()
	var list []string
	for name, value := range header {
		list = append(list, name, value)
	}
	return send(t, s, method, path, nil, list...)
}

// send is request with a body.
func send(t *testing.T, s *Server, method, path string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequest(method, "http://"+s.Address()+path, body))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response := must.Get(transport.RoundTrip(r))(t)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	conforms(t, s, response, string(text))
	return response, string(text)
}

func TestStatusIsTheCrawls(t *testing.T) {
	s := start(t, Options{})
	response, body := request(t, s, "GET", "/api/v1/status", nil)
	var got crawl.Status
	must.Do(t, json.Unmarshal([]byte(body), &got))
	assert.True(t, response.StatusCode == 200 && response.Header.Get("Content-Type") == "application/json" &&
		got.State == "running" && got.URLs["queued"] == 4, "%d, %s, %+v", response.StatusCode,
		response.Header.Get("Content-Type"), got)
	assert.True(t, response.Header.Get("Cache-Control") == "no-store" &&
		response.Header.Get("X-Content-Type-Options") == "nosniff", "headers %v", response.Header)
}

func TestRoutes(t *testing.T) {
	s := start(t, Options{})
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", "/healthz", 200},
		{"HEAD", "/api/v1/status", 200},
		{"POST", "/api/v1/status", 405},
		{"DELETE", "/healthz", 405},
		{"GET", "/", 200},
		{"GET", "/app.js", 200},
		{"GET", "/dashboard/app.js", 404},
		{"GET", "/api/v1/status/", 404},
		{"GET", "/api/v1/../v1/nothing", 307},
	}
	for _, tt := range tests {
		if response, _ := request(t, s, tt.method, tt.path, nil); response.StatusCode != tt.status {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.path, response.StatusCode, tt.status)
		}
	}
}

// A page that a browser on this machine shows may lead its own name here. It must learn nothing.
func TestForeignNamesAreRefusedOnLoopback(t *testing.T) {
	s := start(t, Options{})
	_, port, _ := net.SplitHostPort(s.Address())
	tests := map[string]int{
		s.Address():             200,
		"localhost:" + port:     200,
		"LocalHost":             200,
		"127.9.9.9":             200,
		"[::1]:" + port:         200,
		"[::ffff:127.0.0.1]":    200,
		"evil.example":          421,
		"evil.example:" + port:  421,
		"127.0.0.1.nip.example": 421,
		"localhost.example":     421,
		"192.0.2.1:" + port:     421,
		"0.0.0.0":               421,
	}
	for host, want := range tests {
		for _, path := range []string{"/api/v1/status", "/healthz", "/nothing"} {
			response, body := request(t, s, "GET", path, map[string]string{"Host": host})
			assert.Equal(t, (response.StatusCode == 421), (want == 421), "Host", host, path, response.StatusCode, want)
			assert.True(t, want != 421 || !strings.Contains(body, "queued") &&
				response.Header.Get("Content-Type") == "application/problem+json", "Host %s: %s", host, body)
		}
	}
}

func TestToken(t *testing.T) {
	s := start(t, Options{Token: "right"})
	for header, want := range map[string]int{
		"Bearer right":  200,
		"bearer right":  200,
		"":              401,
		"right":         401,
		"Bearer":        401,
		"Bearer ":       401,
		"Bearer wrong":  401,
		"Bearer right ": 200, // net/http trims header values
		"Bearer  right": 401,
		"Basic right":   401,
	} {
		response, body := request(t, s, "GET", "/api/v1/status", map[string]string{"Authorization": header})
		assert.Equal(t, response.StatusCode, want, "Authorization", header)
		if want == 401 && (response.Header.Get("WWW-Authenticate") == "" || strings.Contains(body, "right") ||
			strings.Contains(body, "queued")) {
			t.Errorf("Authorization %q: %v %s", header, response.Header, body)
		}
	}
	response, _ := request(t, s, "GET", "/healthz", nil)
	assert.True(t, response.StatusCode == 200, "/healthz needs a token: %d", response.StatusCode)
}

// A client that sends too much is cut off, and the server goes on.
func TestTooLongHeader(t *testing.T) {
	s := start(t, Options{})
	c := must.Get(net.Dial("tcp", s.Address()))(t)
	defer c.Close()
	go func() {
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 1<<20))
	}()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		response.Body.Close()
		assert.Equal(t, response.StatusCode, http.StatusRequestHeaderFieldsTooLarge, "a header of 1 MiB")
	}
	if response, _ := request(t, s, "GET", "/healthz", nil); response.StatusCode != 200 {
		t.Errorf("afterwards: %d", response.StatusCode)
	}
}

// Close does not wait for clients that hold a connection and say nothing.
func TestCloseCutsSilentClients(t *testing.T) {
	s := must.Get(Start(Options{Listen: "127.0.0.1:0", DataDir: t.TempDir(), Now: time.Now}, example))(t)
	c := must.Get(net.Dial("tcp", s.Address()))(t)
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must.Do(t, s.Close(ctx))
	assert.Fails(c.Read(make([]byte, 1)))(t, nil, "the connection is still open")
}

func TestPortInUse(t *testing.T) {
	s := start(t, Options{})
	dir := t.TempDir()
	assert.Fails(Start(Options{Listen: s.Address(), DataDir: dir, Now: time.Now}, example))(t, syscall.EADDRINUSE)
	assert.Fails(os.Stat(filepath.Join(dir, AddressFile)))(t, nil, "there is an address file though nothing listens")
}

// A server that cannot say where it is does not stay.
func TestAddressCannotBeWritten(t *testing.T) {
	if _, err := Start(Options{Listen: "127.0.0.1:0", DataDir: filepath.Join(t.TempDir(), "missing"), Now: time.Now},
		example); err == nil {
		t.Error("it runs all the same")
	}
}

// TestFeedOfNothing: a client gets a list of fetches, if only an empty one: the pages of the dashboard cannot be drawn
// with null.
func TestFeedOfNothing(t *testing.T) {
	list, seen := new(feed).since(0, recentFetches)
	if text, err := json.Marshal(list); err != nil || string(text) != "[]" || seen != 0 {
		t.Errorf("the fetches of an empty crawl are %s after %d, %v", text, seen, err)
	}
}
