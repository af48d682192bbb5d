package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

func TestRefusesToBeExposed(t *testing.T) {
	for _, tt := range []struct {
		o       Options
		exposed bool
	}{
		{Options{Listen: "0.0.0.0:0"}, true},
		{Options{Listen: ":0", Token: "t"}, true},
		{Options{Listen: "[::]:0", BehindProxy: true}, true},
		{Options{Listen: "0.0.0.0:0", Token: "t", BehindProxy: true}, false},
		{Options{Listen: "127.0.0.1:0"}, false},
	} {
		tt.o.DataDir, tt.o.Now = t.TempDir(), time.Now
		s, err := Start(tt.o, example)
		assert.Equal(t, errors.Is(err, ErrExposed), tt.exposed, tt.o, err)
		if s != nil {
			_ = s.Close(context.Background())
		}
	}
}

// The token for reading looks at everything and changes nothing.
func TestReadToken(t *testing.T) {
	s := start(t, Options{Token: "full", ReadToken: "look", Settings: &fixedSettings{workers: 1}})
	for _, tt := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", "/api/v1/status", "look", 200}, {"HEAD", "/api/v1/status", "look", 200},
		{"GET", "/api/v1/config", "look", 200}, {"GET", "/", "look", 200},
		{"GET", "/api/v1/backup", "look", 403}, {"GET", "/api/v1/backup", "full", 503},
		{"GET", "/api/v1/backup", "", 401},
		{"POST", "/api/v1/crawl/stop", "look", 403}, {"POST", "/api/v1/hosts/a/drop", "look", 403},
		{"POST", "/api/v1/urls", "look", 403}, {"POST", "/api/v1/urls/delete", "look", 403},
		{"PATCH", "/api/v1/config", "look", 403}, {"DELETE", "/api/v1/status", "look", 403},
		{"POST", "/nothing", "look", 403},
		{"POST", "/api/v1/crawl/stop", "full", 503}, {"GET", "/", "", 401}, {"GET", "/nothing", "", 401},
		{"POST", "/api/v1/crawl/stop", "", 401},
	} {
		response, body := send(t, s, tt.method, tt.path, nil, "Authorization", "Bearer "+tt.token)
		assert.Equal(t, response.StatusCode, tt.status, tt.method, tt.path, "with", tt.token, body)
	}
	r := must.Get(http.NewRequest("GET", "http://"+s.Address()+"/api/v1/status", nil))(t)
	for password, want := range map[string]int{"full": 200, "look": 200, "guess": 401, "": 401} {
		r.SetBasicAuth("anybody", password)
		response, _ := send(t, s, "GET", "/api/v1/status", nil, "Authorization", r.Header.Get("Authorization"))
		assert.Equal(t, response.StatusCode, want, "Basic with", password)
	}
}

// Guessing ends after some tries, for the right token too; other clients go on.
func TestGuessingIsSlow(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	s := start(t, Options{Token: "right", BehindProxy: true, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	send := func(token, client string) int {
		response, body := send(t, s, "GET", "/api/v1/status", nil, "Authorization", "Bearer "+token,
			"X-Forwarded-For", "198.51.100.9, "+client)
		assert.True(t, !strings.Contains(body, "right"), "%v", body)
		assert.True(t, response.StatusCode != 429 || response.Header.Get("Retry-After") != "", "no Retry-After")
		return response.StatusCode
	}
	refused := 0
	for range 100 {
		if send("guess", "192.0.2.1") == 429 {
			refused++
		}
	}
	assert.AtLeast(t, refused, 70, "of 100 guesses were cut short")
	assert.Equal(t, send("right", "192.0.2.1"), 429, "the right token of who guessed")
	assert.Equal(t, send("right", "192.0.2.2"), 200, "somebody else")
	now.Add(int64(time.Minute))
	assert.Equal(t, send("right", "192.0.2.1"), 200, "a minute later")
}

func TestTooManyRequests(t *testing.T) {
	at := time.Now()
	s := start(t, Options{Now: func() time.Time { return at }})
	refused := 0
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range requestBurst + 50 {
		r, _ := http.NewRequest("GET", "http://"+s.Address()+"/healthz", nil)
		response := must.Get(transport.RoundTrip(r))(t)
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode == 429 {
			refused++
		}
	}
	assert.Equal(t, refused, 50, "refused")
}

// What a page of another site makes a browser send changes nothing; a name that leads here learns
// nothing.
func TestOtherSites(t *testing.T) {
	s := start(t, Options{Hosts: []string{"crawler.example.org"}})
	for _, header := range [][]string{
		{"Origin", "http://evil.test"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "null"},
		{"Origin", "http://" + s.Address() + ".evil.test"},
	} {
		for _, path := range []string{"/api/v1/crawl/stop", "/api/v1/urls", "/api/v1/hosts/a.test/drop"} {
			if response, body := send(t, s, "POST", path, strings.NewReader("x"),
				header...); response.StatusCode != 403 {
				t.Errorf("%s %v: %d, %s", path, header, response.StatusCode, body)
			}
		}
	}
	if response, _ := send(t, s, "POST", "/api/v1/crawl/stop", nil, "Origin", "http://"+s.Address(), "Sec-Fetch-Site",
		"same-origin"); response.StatusCode != 503 {
		t.Errorf("our own page: %d", response.StatusCode)
	}
	for host, want := range map[string]int{"crawler.example.org": 200, "CRAWLER.example.org:8377": 200,
		"evil.crawler.example.org": 421, "crawler.example.org.": 421} {
		response, _ := send(t, s, "GET", "/api/v1/status", nil, "Host", host)
		assert.True(t, response.StatusCode == want, "Host %s: %d, want %d", host, response.StatusCode, want)
	}
}

func TestPathTricks(t *testing.T) {
	s := start(t, Options{Token: "secret"})
	for _, target := range []string{
		"/healthz/../api/v1/status", "/healthz/%2e%2e/api/v1/status", "//api/v1/status", "/api//v1/status",
		"/api/v1/status/", "/API/v1/status", "/api/v1/status%00",
		"/api/v1/status;x=/healthz", "/api/v1/hosts/..%2f..%2f..%2fetc%2fpasswd", "/api/v1/%2e%2e/%2e%2e/etc/passwd",
		"/healthz%2f..%2fapi%2fv1%2fstatus", "/readyz/", "/\\api\\v1\\status",
		"http://localhost/api/v1/status", "*",
	} {
		c := must.Get(net.Dial("tcp", s.Address()))(t)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target)
		answer, _ := io.ReadAll(c)
		c.Close()
		assert.True(t, !strings.Contains(string(answer), "queued") &&
			!strings.HasPrefix(string(answer), "HTTP/1.1 200") && !strings.Contains(string(answer), "root:"), "%s: %s",
			target, answer)
	}
}

// zeros is a body without an end that takes no memory. It counts what is read.
type zeros struct{ read atomic.Int64 }

func (z *zeros) Read(b []byte) (int, error) {
	clear(b)
	z.read.Add(int64(len(b)))
	return len(b), nil
}

// A body of a gigabyte is not read to its end.
func TestHugeBodies(t *testing.T) {
	s := start(t, Options{Settings: &fixedSettings{}, Now: time.Now})
	for path, method := range map[string]string{"/api/v1/config": "PATCH", "/api/v1/hosts/a.test/pause": "POST",
		"/api/v1/crawl/stop": "POST", "/api/v1/status": "GET", "/": "POST"} {
		body := &zeros{}
		r := must.Get(http.NewRequest(method, "http://"+s.Address()+path, io.LimitReader(body, 1<<30)))(t)
		r.ContentLength = 1 << 30
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		assert.AtMost(t, body.read.Load(), 1<<29, path, "bytes were sent")
		if err != nil {
			continue // cut off while it was sent
		}
		response.Body.Close()
		assert.True(t, response.StatusCode != 200 || method == "GET", "%s: %d", path, response.StatusCode)
	}
	response, _ := request(t, s, "GET", "/healthz", nil)
	assert.True(t, response.StatusCode == 200, "afterwards: %d", response.StatusCode)
}

// A body that does not come, and a header that does not end, hold nobody up.
func TestSlowBody(t *testing.T) {
	s := start(t, Options{Settings: &fixedSettings{}, Now: time.Now})
	for _, begin := range []string{
		"PATCH /api/v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
			"100\r\n\r\n{",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
	} {
		t.Run(begin[:5], func(t *testing.T) {
			t.Parallel()
			c := must.Get(net.Dial("tcp", s.Address()))(t)
			defer c.Close()
			fmt.Fprint(c, begin)
			_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil {
				response.Body.Close()
				assert.AtLeast(t, response.StatusCode, 400)
			}
			assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "it is held")
		})
	}
}

// Connections that say nothing keep nobody out, and few of them are held.
func TestSilentConnections(t *testing.T) {
	s := start(t, Options{Now: time.Now})
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range 8 * maxConnections {
		c, err := net.Dial("tcp", s.Address())
		must.Do(t, err, "after", len(held))
		held = append(held, c)
	}
	response, _ := request(t, s, "GET", "/healthz", nil)
	assert.True(t, response.StatusCode == 200, "%d", response.StatusCode)
	assert.AtMost(t, s.gate.Connections(), maxConnections, "connections are held")
}

// certify writes a certificate into a directory, with the time of the one before and some seconds.
func certify(t *testing.T, dir string, seconds int) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = testkit.Certify(t, dir)
	later := time.Now().Add(time.Duration(seconds) * time.Second)
	must.Do(t, errors.Join(os.Chtimes(certFile, later, later), os.Chtimes(keyFile, later, later)))
	return certFile, keyFile
}

// Commands on the machine know the certificate from the address file, and believe no other; a
// replaced one is taken up.
func TestTLS(t *testing.T) {
	certificates, dir := t.TempDir(), t.TempDir()
	o := Options{Token: "secret", DataDir: dir, Now: time.Now}
	o.TLSCert, o.TLSKey = certify(t, certificates, 1)
	s := start(t, o)
	send := func() error {
		_, _, err := FetchStatus(context.Background(), dir, "secret")
		return err
	}
	must.Do(t, send())
	before, err := readAddress(dir)
	must.True(t, err == nil && len(before.Certificate) == 64, "%+v, %v", before, err)
	certify(t, certificates, 2)
	_ = send() // may come with the old fingerprint
	must.Do(t, send())
	if after, err := readAddress(dir); err != nil || after.Certificate == before.Certificate {
		t.Errorf("the replaced certificate is not in use: %v", err)
	}
	must.Do(t, writeAddress(dir, s.Address(), s.instance, strings.Repeat("0", 64)))
	assert.Is(t, send(), ErrNotRunning, "another certificate than that of the address file")
	for _, bad := range []Options{{TLSCert: "missing", TLSKey: o.TLSKey}, {TLSCert: o.TLSCert, TLSKey: o.TLSCert}} {
		bad.Listen, bad.DataDir = "127.0.0.1:0", t.TempDir()
		if s, err := Start(bad, example); err == nil {
			t.Errorf("%+v starts", bad)
			_ = s.Close(context.Background())
		}
	}
}
