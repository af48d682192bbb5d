package testweb

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a web until the test ends.
func start(t *testing.T, c Config) *Web {
	t.Helper()
	web := must.Get(New(c))(t)
	t.Cleanup(func() {
		assert.NoError(t, web.Close(), "close")
	})
	return web
}

// newClient returns a client that uses the web's DNS server and follows no redirect.
func newClient(t *testing.T, web *Web) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: (&net.Dialer{Resolver: resolver(web, "udp")}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func resolver(web *Web, network string) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, web.ResolverAddr())
		},
	}
}

// get fetches a page and returns response and body. The status is 0 if there was no response.
func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return &http.Response{}, string(body)
	}
	return response, string(body)
}

func TestSitesAnswerByNameAndAddress(t *testing.T) {
	web := start(t, Config{Sites: []Site{
		{Host: "a.test", Handler: Page("A")},
		{Host: "b.test", Handler: Page("B"), Group: "shared"},
		{Host: "c.test", Handler: Page("C"), Group: "shared"},
		{Host: "none.test"},
	}})
	client := newClient(t, web)
	for host, want := range map[string]int{"a.test": 200, "b.test": 200, "c.test": 200, "none.test": 404} {
		response, _ := get(t, client, web.URL(host, "/"))
		assert.True(t, response.StatusCode == want, "%s: status %d, want %d", host, response.StatusCode, want)
		for _, q := range web.Requests().Host(host) {
			assert.Equal(t, q.Address, web.Address(host).String(), host, "was reached at has address",
				web.Address(host))
		}
	}
	assert.Equal(t, web.Address("b.test"), web.Address("c.test"), "sites of one group have different addresses")
	if loopbackIsOneAddress(t) {
		return
	}
	assert.Not(t, web.Address("a.test"), web.Address("b.test"), "sites of different groups share an address")
}

// loopbackIsOneAddress reports whether the system has only 127.0.0.1.
func loopbackIsOneAddress(t *testing.T) bool {
	t.Helper()
	l, err := net.Listen("tcp4", "127.1.0.1:0")
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

func TestEveryAddressServesEverySite(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Page("A")}, {Host: "b.test", Handler: Page("B")}}})
	client := newClient(t, web)
	web.SetAnswer("a.test", web.Address("b.test"))
	response, _ := get(t, client, web.URL("a.test", "/"))
	must.True(t, response.StatusCode == 200, "status %d, want 200", response.StatusCode)
	if got := web.Requests()[0]; got.Host != "a.test" || got.Address != web.Address("b.test").String() {
		t.Errorf("recorded %s at %s, want a.test at the address of b.test", got.Host, got.Address)
	}
	web.SetAnswer("stranger.test", web.Address("a.test"))
	if response, _ := get(t, client,
		web.URL("stranger.test", "/")); response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a host that is not served: status %d, want 421", response.StatusCode)
	}
}

func TestSetHandler(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test", Handler: Status(503)}}})
	client := newClient(t, web)
	for _, want := range []int{503, 200} {
		response, _ := get(t, client, web.URL("a.test", "/"))
		assert.True(t, response.StatusCode == want, "status %d, want %d", response.StatusCode, want)
		web.SetHandler("a.test", Page("up again"))
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, sites := range map[string][]Site{
		"twice": {{Host: "a.test"}, {Host: "a.test"}},
		"upper": {{Host: "A.test"}},
		"empty": {{}},
	} {
		if web, err := New(Config{Sites: sites}); err == nil {
			t.Errorf("%s: no error", name)
			_ = web.Close()
		}
	}
}

func TestLoopbackAddressesAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for i := 1; i <= 200_000; i++ {
		a := loopback(i)
		must.True(t, a.IsLoopback() && !seen[a.String()], "address %d, %s, is no loopback address or occurred before",
			i, a)
		seen[a.String()] = true
	}
}

func TestSystemWithOneLoopbackAddress(t *testing.T) {
	// 192.0.2.0/24 is for documentation (RFC 5737), so this machine does not have it.
	listeners, err := listen(3, 0, func(int) netip.Addr { return netip.MustParseAddr("192.0.2.1") }, net.Listen)
	assert.True(t, err == nil && len(listeners) == 1, "%d listeners, %v; want 127.0.0.1 alone", len(listeners), err)
	closeAll(listeners)
}

func TestListenersShareAPort(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test"}, {Host: "b.test"}, {Host: "c.test"}}})
	for _, host := range web.Sites() {
		c, err := net.Dial("tcp", netip.AddrPortFrom(web.Address(host), web.Port()).String())
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		_ = c.Close()
	}
}

func TestCloseEndsWhatIsRunning(t *testing.T) {
	begun := make(chan struct{})
	web := must.Get(New(Config{Sites: []Site{{Host: "a.test",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			Slow(time.Hour, Page("never")).ServeHTTP(w, r)
		})}}}))(t)
	client := newClient(t, web)
	stream, err := net.Dial("tcp", web.ResolverAddr()) // a DNS connection without a question
	must.Do(t, err)
	defer stream.Close()
	var wait sync.WaitGroup
	wait.Go(func() { get(t, client, web.URL("a.test", "/")) })
	<-begun
	must.Do(t, web.Close())
	wait.Wait()
	log := web.Requests()
	assert.True(t, len(log) == 1 && log[0].Path == "/", "the record after Close: %+v, want one request", log)
	_ = web.Close() // a second time: harmless
}

func TestCountOnlyKeepsNoRecord(t *testing.T) {
	web := start(t, Config{CountOnly: true, Sites: []Site{{Host: "a.test", Handler: Page("A")}}})
	client := newClient(t, web)
	get(t, client, web.URL("a.test", "/"))
	get(t, client, web.URL("a.test", "/x"))
	assert.True(t, web.Served() == 2 && web.ServedBy("a.test") == 2 && len(web.Requests()) == 0,
		"served %d, by host %d, recorded %d; want 2, 2, 0", web.Served(), web.ServedBy("a.test"), len(web.Requests()))
}
