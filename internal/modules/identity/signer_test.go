package identity

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const botURL = "https://bot.amble.test"

// testKeyring is a keyring with one key.
func testKeyring(t testing.TB, now time.Time) (*Keyring, *Key) {
	t.Helper()
	k := must.Get(NewKey([]byte("0123456789abcdef0123456789ABCDEF"), now.Add(-time.Hour)))(t)
	return &Keyring{dir: t.TempDir(), keys: []*Key{k}, read: now.Add(1000 * time.Hour)}, k
}

func newTestSigner(t testing.TB, sign string, now func() time.Time, legacy ...string) (*Signer, *Key) {
	t.Helper()
	keys, k := testKeyring(t, now())
	o := SignerOptions{URL: botURL, Sign: sign, Now: now, Marks: wall.NewMarks()}
	for _, host := range legacy {
		o.Legacy = append(o.Legacy, fetch.HostPattern(host))
	}
	return NewSigner(o, keys), k
}

func asHeader(fields []fetch.Header) http.Header {
	h := make(http.Header)
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

// TestSigner: each request that is signed verifies for its own authority and for no other, without the default port,
// and not beyond ten minutes.
func TestSigner(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s, k := newTestSigner(t, SignAlways, clock, "old.test")
	for _, c := range []struct{ url, authority string }{
		{"https://a.test/x?y", "a.test"}, {"https://a.test:443/robots.txt", "a.test"},
		{"https://a.test:8443/", "a.test:8443"}, {"https://B.test/", "b.test"},
		{"https://[2001:db8::1]/", "[2001:db8::1]"},
	} {
		h := asHeader(s.Sign(testkit.Parse(t, c.url)))
		assert.NoError(t, verifyBot(message{authority: c.authority, header: h}, k.public, botURL, now), c.url)
		assert.True(t, verifyBot(message{authority: "c.test", header: h}, k.public, botURL, now) != nil,
			"%s: it holds for another authority", c.url)
		if verifyBot(message{authority: c.authority, header: h}, k.public, botURL, now.Add(lifetime)) == nil {
			t.Errorf("%s: it holds after its end", c.url)
		}
	}
	got := s.Sign(testkit.Parse(t, "http://a.test/"))
	assert.True(t, got == nil, "without TLS: %v", got)
	first := s.Sign(testkit.Parse(t, "https://a.test/1"))
	assert.Slice(t, first, s.Sign(testkit.Parse(t, "https://a.test/2")), "a signature serves one request alone")
	for range 3 {
		now = now.Add(renewal)
		h := asHeader(s.Sign(testkit.Parse(t, "https://a.test/1")))
		assert.NoError(t, verifyBot(message{authority: "a.test", header: h}, k.public, botURL, now.Add(renewal-1)),
			"just before it is renewed")
	}
	h := asHeader(s.Sign(testkit.Parse(t, "https://old.test/")))
	err := verify(message{authority: "old.test", header: h}, "sig1", k.public, now)
	assert.True(t, err == nil && h.Get("Signature-Agent") == `"`+botURL+`"`, "bare string: %v, %v", err, h)
}

// TestSignerAsked: a request is repeated once for an answer that asks who sends it, and what comes then counts.
func TestSignerAsked(t *testing.T) {
	ask := fields("Accept-Signature", `sig7=("@authority");nonce="n1";tag="web-bot-auth"`)
	plain := fields("Accept-Signature", `sig7=("@authority");tag="web-bot-auth"`)
	challenge := fields("Cf-Mitigated", "challenge")
	type step struct {
		status int
		header http.Header
		again  bool   // wanted
		signed string // the label of the next signature, wanted; empty: none
	}
	for _, c := range []struct {
		name, sign string
		steps      []step
	}{
		{"asked by a field", SignAsked, []step{{403, plain, true, "sig7"}, {403, plain, false, "sig7"}}},
		{"asked by a challenge", SignAsked, []step{{403, challenge, true, "sig1"}, {403, challenge, false, "sig1"}}},
		{"asked with a nonce", SignAsked, []step{{401, ask, true, "sig7"}, {401, ask, false, "sig7"}}},
		{"a page that asks", SignAsked, []step{{200, plain, false, "sig7"}}},
		{"a refusal without asking", SignAsked, []step{{403, nil, false, ""}, {429, nil, false, ""}}},
		{"asked for another profile", SignAsked,
			[]step{{403, fields("Accept-Signature", `x=("@method");tag="other"`), false, ""}}},
		{"asked for RSA", SignAsked, []step{{403, fields("Accept-Signature", `x=();alg="rsa-pss-sha512"`), false, ""}}},
		{"nonsense", SignAsked, []step{{403, fields("Accept-Signature", `x=(((`), false, ""},
			{403, fields("Accept-Signature", strings.Repeat(`x=("a"), `, 1000)), false, ""}}},
		{"always, and a nonce is wanted", SignAlways, []step{{403, ask, true, "sig7"}, {403, ask, false, "sig7"}}},
		{"always, and refused", SignAlways, []step{{403, plain, false, "sig7"}, {403, challenge, false, "sig7"}}},
		{"never", SignNever, []step{{403, ask, false, ""}, {403, challenge, false, ""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
			s, k := newTestSigner(t, c.sign, func() time.Time { return now })
			u := testkit.Parse(t, "https://a.test/")
			sent := s.Sign(u)
			for i, step := range c.steps {
				assert.Equal(t, s.Answered(u, len(sent) > 0, step.status, step.header), step.again, "step", i, "again")
				sent = s.Sign(u)
				h := asHeader(sent)
				label, _, _ := strings.Cut(h.Get("Signature-Input"), "=")
				assert.Equal(t, label, step.signed, "step", i, "label")
				if label == "" {
					continue
				}
				assert.NoError(t, verifyBot(message{authority: "a.test", header: h}, k.public, botURL, now), "step", i)
				wantsNonce := strings.Contains(step.header.Get("Accept-Signature"), "nonce")
				assert.Equal(t, strings.Contains(h.Get("Signature-Input"), `;nonce="n1"`), wantsNonce, "step", i,
					"nonce")
				assert.True(t, !strings.Contains(asHeader(s.Sign(u)).Get("Signature-Input"), "nonce"),
					"step %d: a nonce serves two requests", i)
			}
		})
	}
}

// TestSignerBounded: what is kept of origins does not grow with them.
func TestSignerBounded(t *testing.T) {
	now := time.Now()
	s, _ := newTestSigner(t, SignAsked, func() time.Time { return now })
	for i := range 3 * maxOrigins {
		s.Sign(testkit.Parse(t, fmt.Sprintf("https://h%d.test/", i)))
	}
	assert.AtMost(t, len(s.recent)+len(s.older), 2*maxOrigins, "origins are kept")
}

// secureServer is a server of a test web with TLS, that checks each request.
type secureServer struct{ *http.Server }

func (s secureServer) Serve(l net.Listener) error { return s.ServeTLS(l, "", "") }

// signedWeb is a web with TLS, which keeps what is wrong with each request by the verifier.
type signedWeb struct {
	*testweb.Web
	unsigned bool // requests without a signature are well too
	mu       sync.Mutex
	seen     map[string]int // requests by protocol and path
	wrong    []string
}

func startSignedWeb(t *testing.T, key *Key, http2 bool, sites []testweb.Site) *signedWeb {
	t.Helper()
	certFile, keyFile := testkit.Certify(t, t.TempDir())
	authority := must.Get(os.ReadFile(certFile))(t)
	certificate := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	w := &signedWeb{seen: make(map[string]int)}
	config := testweb.Config{Sites: sites, Authorities: authority, CountOnly: true}
	w.Web = must.Get(testweb.NewWith(config, func(s *http.Server) testweb.Server {
		next := s.Handler
		s.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.check(r, key)
			next.ServeHTTP(rw, r)
		})
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(http2)
		return secureServer{s}
	}))(t)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func (w *signedWeb) check(r *http.Request, key *Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[r.Proto+" "+r.URL.Path]++
	if r.Header.Get("Signature") == "" && w.unsigned {
		return
	}
	m := message{method: r.Method, authority: r.Host, path: r.URL.Path, header: r.Header}
	if err := verifyBot(m, key.public, botURL, time.Now()); err != nil {
		w.wrong = append(w.wrong, fmt.Sprintf("%s %s%s: %v", r.Proto, r.Host, r.URL.Path, err))
	}
}

// runSigned crawls a web from its first page.
func runSigned(t *testing.T, w *signedWeb, s *Signer, http2 bool) crawl.Summary {
	t.Helper()
	o := crawl.DefaultOptions()
	o.DataDir, o.Archive.Dir = t.TempDir(), t.TempDir()
	o.ExitWhenDone, o.Now = true, time.Now
	o.Mode = frontier.ModeAny
	o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = "amble-test/1 (+"+botURL+"/)", true, w.ResolverAddr()
	o.Fetch.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	o.Fetch.HTTP2, o.Fetch.Signer = http2, s
	o.Frontier.Politeness.Delay, o.Frontier.RetryDelay = time.Millisecond, time.Millisecond
	e := must.Get(crawl.Open(o, slog.New(slog.NewTextHandler(io.Discard, nil))))(t)
	defer func() {
		assert.NoError(t, e.Close())
	}()
	seed := must.Get(weburl.Parse(w.URL("a.test", "/")))(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	return must.Get(e.Run(ctx, []crawl.Seed{{URL: seed}}))(t)
}

// TestCrawlSigns: the server verifies every request of a crawl over both protocols: those for robots.txt, those behind
// redirects to another host, and those that are repeated.
func TestCrawlSigns(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2 %v", http2), func(t *testing.T) {
			s, k := newTestSigner(t, SignAlways, time.Now)
			failing := 0
			sites := []testweb.Site{{Host: "a.test"}, {Host: "b.test"}}
			w := startSignedWeb(t, k, http2, sites)
			w.SetHandler("a.test", testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nAllow: /\n"),
				"/":           testweb.Page("start", "/away", "/flaky", "/plain"),
				"/plain":      testweb.Page("plain"),
				"/away":       testweb.Redirect(302, w.URL("b.test", "/there")),
				"/flaky": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if failing++; failing == 1 {
						rw.WriteHeader(http.StatusInternalServerError)
						return
					}
					_, _ = io.WriteString(rw, "fine")
				}),
			})
			w.SetHandler("b.test", testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nAllow: /\n"), "/there": testweb.Page("there")})
			runSigned(t, w, s, http2)
			for _, wrong := range w.wrong {
				t.Error(wrong)
			}
			proto := "HTTP/1.1"
			if http2 {
				proto = "HTTP/2.0"
			}
			for path, want := range map[string]int{
				"/": 1, "/robots.txt": 2, "/away": 1, "/there": 1, "/flaky": 2, "/plain": 1,
			} {
				assert.Equal(t, w.seen[proto+" "+path], want, proto, path, "was requested times")
			}
		})
	}
}

// TestCrawlSignsAsked: pages behind a server that asks who is there are fetched. The request that it refuses is
// repeated once, and is no attempt and no evidence of a wall; then the whole crawl is signed.
func TestCrawlSignsAsked(t *testing.T) {
	s, k := newTestSigner(t, SignAsked, time.Now)
	w := startSignedWeb(t, k, true, []testweb.Site{{Host: "a.test"}})
	w.unsigned = true
	const pages = 8
	routes := testweb.Routes{
		"/robots.txt": testweb.Robots("User-agent: *\nAllow: /\n"), "/": testweb.Page("start", "/0"),
	}
	for i := range pages {
		page := testweb.Page("page", fmt.Sprintf("/%d", (i+1)%pages))
		routes[fmt.Sprintf("/%d", i)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Signature") == "" {
				rw.Header().Set("Accept-Signature", `sig1=("@authority" "signature-agent");tag="web-bot-auth"`)
				rw.WriteHeader(http.StatusForbidden)
				return
			}
			page.ServeHTTP(rw, r)
		})
	}
	w.SetHandler("a.test", routes)
	sum := runSigned(t, w, s, true)
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	assert.Equal(t, sum.Status.URLs["fetched"], pages+1, "pages were fetched", sum.Status.URLs)
	total := 0
	for _, n := range w.seen {
		total += n
	}
	if want := pages + 3; total != want { // with robots.txt, the start, and the request that was refused
		t.Errorf("%d requests, want %d: %v", total, want, w.seen)
	}
}

// TestCrawlSignsRobots: a robots.txt behind a server that asks who is there is requested again with a signature, and is
// obeyed: the answer that asks is no permission.
func TestCrawlSignsRobots(t *testing.T) {
	s, k := newTestSigner(t, SignAsked, time.Now)
	w := startSignedWeb(t, k, true, []testweb.Site{{Host: "a.test"}})
	w.unsigned = true
	routes := testweb.Routes{
		"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private\n"),
		"/":           testweb.Page("start", "/private", "/open"),
		"/private":    testweb.Page("private"),
		"/open":       testweb.Page("open"),
	}
	w.SetHandler("a.test", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Signature") == "" {
			rw.Header().Set("Accept-Signature", `sig1=("@authority" "signature-agent");tag="web-bot-auth"`)
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		routes.ServeHTTP(rw, r)
	}))
	sum := runSigned(t, w, s, true)
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	if n := w.seen["HTTP/2.0 /private"]; n > 0 || sum.Status.URLs["fetched"] != 2 || sum.Status.URLs["denied"] != 1 {
		t.Errorf("a disallowed page was requested %d times; %v, %v", n, sum.Status.URLs, w.seen)
	}
}

// TestCounts: responses are counted by signature, refusal and wall, those without TLS not.
func TestCounts(t *testing.T) {
	s, _ := newTestSigner(t, SignAlways, time.Now)
	s.o.Counts = NewCounts()
	u, plain := testkit.Parse(t, "https://a.test/"), testkit.Parse(t, "http://a.test/")
	s.Answered(u, false, 403, fields("Cf-Mitigated", "challenge"))
	s.Answered(u, true, 200, nil)
	s.Answered(u, true, 403, nil)
	s.Answered(plain, true, 200, nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.o.Counts)
	families, err := registry.Gather()
	must.True(t, err == nil && len(families) == 1, "%v %v", families, err)
	var got []string
	for _, m := range families[0].GetMetric() {
		text := fmt.Sprint(m.GetCounter().GetValue())
		for _, l := range m.GetLabel() { // by their names: refused, signed, wall
			text += " " + l.GetValue()
		}
		got = append(got, text)
	}
	slices.Sort(got)
	assert.Slice(t, got, []string{"1 false true ", "1 true false Cloudflare", "1 true true "})
	s.Answered(testkit.Parse(t, "https://served.test/"), true, 200, nil)
	origins := s.Origins()
	if want := (OriginAnswers{Origin: "https://a.test", Unsigned: Answers{Refused: 1}, Signed: Answers{1, 1},
		Wall: "Cloudflare"}); len(origins) != 1 || origins[0] != want {
		t.Errorf("%+v, want %+v alone", origins, want)
	}
}
