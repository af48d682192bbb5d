package testweb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxRequests is the number of requests that a Web records if its Config has none, of 300 bytes each.
const DefaultMaxRequests = 200_000

// Web serves its sites until it is closed. Any goroutine may call its methods.
type Web struct {
	port      uint16
	reach     Reach
	scheme    string
	hosts     []string // as configured
	sites     map[string]*site
	recorder  *recorder
	listening []net.Addr
	dial      Dial
	virtual   bool
	listen    listenFunc
	dns       *dnsServer
	server    Server
	conns     connServer // of hosts that Serve has added
	served    atomic.Int64

	authorities []byte // in PEM form; nil without TLS

	context context.Context // of every request
	stop    context.CancelFunc
	running sync.WaitGroup // accept loops, and handlers that began before closed

	mu     sync.Mutex // guards closed, and running.Add against running.Wait
	closed bool
}

type site struct {
	host    string
	port    uint16
	address netip.Addr
	handler atomic.Pointer[http.Handler]
	served  atomic.Int64

	scheme, name string // with which it is reached
}

// TB is what Serve needs of a test.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
	Error(...any)
}

// Serve starts a web that lives until the test ends.
func Serve(t TB, c Config) *Web {
	t.Helper()
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// New starts a web: its listeners, its DNS server, its record.
func New(c Config) (*Web, error) {
	return NewWith(c, func(s *http.Server) Server { return s })
}

// Server handles connections to listeners until it is closed.
type Server interface {
	Serve(net.Listener) error
	Close() error
}

// NewWith is New with another server, which is made of the one that New has.
func NewWith(c Config, from func(*http.Server) Server) (*Web, error) {
	return newWeb(c, func(w *Web) Server { return from(newHTTPServer(w, &c)) })
}

func newWeb(c Config, newServer func(*Web) Server) (*Web, error) {
	if c.MaxRequests == 0 {
		c.MaxRequests = DefaultMaxRequests
	}
	if c.TTL == 0 {
		c.TTL = time.Minute
	}
	plain := slices.DeleteFunc(slices.Clone(c.Sites), func(s Site) bool { return s.Secure != nil })
	groups, err := groupSites(plain, c.Reach)
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	if c.Reach == ByPort {
		listeners, err = listenPorts(len(groups.names), c.listener())
	} else {
		listeners, err = listen(len(groups.names), c.Port, loopback, c.listener())
	}
	if err != nil {
		return nil, fmt.Errorf("testweb: listen: %w", err)
	}
	if c.Reach == ByAddress && len(listeners) < len(groups.names) {
		closeAll(listeners)
		return nil, errors.New("testweb: this system has no loopback address except 127.0.0.1")
	}
	w := &Web{
		scheme:   "http",
		port:     listeners[0].Addr().(*net.TCPAddr).AddrPort().Port(),
		sites:    make(map[string]*site, len(c.Sites)),
		recorder: newRecorder(c.MaxRequests),
		reach:    c.Reach,
		dial:     c.dial(),
		listen:   c.listener(),
		virtual:  c.Network != nil,

		authorities: c.Authorities,
	}
	if c.Authorities != nil {
		w.scheme = "https"
	}
	w.context, w.stop = context.WithCancel(context.Background())
	answers, aliases := make(map[string][]netip.Addr, len(c.Sites)), make(map[string]string)
	for _, s := range plain {
		// Fewer listeners than groups: the system has only 127.0.0.1.
		i := min(groups.index[s.Host], len(listeners)-1)
		w.hosts = append(w.hosts, s.Host)
		w.sites[s.Host] = newSite(w.scheme, s.Host, listeners[i].Addr(), s.Handler)
		answers[s.Host] = []netip.Addr{w.sites[s.Host].address}
		if s.Alias != "" {
			aliases[s.Host] = s.Alias
		}
	}
	if w.dns, err = newDNS(answers, aliases, &c); err != nil {
		w.stop()
		closeAll(listeners)
		return nil, fmt.Errorf("testweb: DNS: %w", err)
	}
	w.server = newServer(w)
	for i, l := range listeners {
		w.listening = append(w.listening, l.Addr())
		if c.CountOnly {
			l = &countedListener{Listener: l, accepted: &w.recorder.conns}
		} else {
			recorded := &recordedListener{Listener: l, recorder: w.recorder, max: c.MaxConns}
			if c.Reach != ByName && i < len(w.hosts) {
				recorded.site = w.sites[w.hosts[i]]
			}
			l = recorded
		}
		w.running.Go(func() { _ = w.server.Serve(l) })
	}
	for _, s := range c.Sites {
		if s.Secure != nil {
			err = errors.Join(err, w.listenSecurely(s, &c))
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func newSite(scheme, host string, at net.Addr, h http.Handler) *site {
	a := at.(*net.TCPAddr).AddrPort()
	s := &site{scheme: scheme, name: host, host: host, address: a.Addr(), port: a.Port()}
	if h == nil {
		h = http.NotFoundHandler()
	}
	s.handler.Store(&h)
	return s
}

// clientTimeout is for a request to arrive, and for a connection without one, if connections are bounded.
const clientTimeout = time.Minute

func newHTTPServer(w *Web, c *Config) *http.Server {
	s := &http.Server{
		Handler:        http.HandlerFunc(w.count),
		BaseContext:    func(net.Listener) context.Context { return w.context },
		ErrorLog:       log.New(io.Discard, "", 0),
		MaxHeaderBytes: 64 << 10,
	}
	if c.MaxConns > 0 {
		s.ReadTimeout, s.IdleTimeout = clientTimeout, clientTimeout
	}
	if !c.CountOnly {
		s.Handler = http.HandlerFunc(w.record)
		s.ConnContext = connContext
		s.ConnState = connState
	}
	return s
}

// Move serves hosts at another listener, whose address their names have from then on. Call it before the first request.
func (w *Web) Move(l net.Listener, to netip.Addr, hosts ...string) {
	for _, host := range hosts {
		w.sites[host].address = to
		w.SetAnswer(host, to)
	}
	w.running.Go(func() { _ = w.server.Serve(l) })
}

// Close ends the web: no goroutine, connection or listener is left. The record stays readable.
func (w *Web) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	err := errors.Join(w.server.Close(), w.conns.Close(), w.dns.close())
	w.running.Wait()
	return err
}

// enter registers a running handler. It returns false once the web is closing.
func (w *Web) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.running.Add(1)
	return true
}

// count serves a request without recording it.
func (w *Web) count(rw http.ResponseWriter, r *http.Request) {
	if !w.enter() {
		panic(http.ErrAbortHandler)
	}
	defer w.running.Done()
	w.answer(rw, r, hostOf(r.Host))
}

// record serves a request between the record's begin and end.
func (w *Web) record(rw http.ResponseWriter, r *http.Request) {
	if !w.enter() {
		panic(http.ErrAbortHandler)
	}
	defer w.running.Done()
	c := connOf(r.Context())
	if r.Method == http.MethodConnect && w.tunnel(rw, r) {
		return
	}
	if r.URL.IsAbs() { // to a proxy
		r.RequestURI = r.URL.RequestURI()
	}
	host := hostOf(r.Host)
	if c.site != nil {
		host = c.site.host
	}
	c.begin(w.recorder.begin(c, requestInfo{
		method: r.Method, host: host, path: r.RequestURI, agent: r.UserAgent(),
		node: r.Header.Get(NodeField), from: r.Header.Get("From"),
		noneMatch: r.Header.Get("If-None-Match"), modifiedSince: r.Header.Get("If-Modified-Since"),
	}))
	complete := false
	defer func() {
		if !complete { // the handler panicked: net/http will cut the connection
			c.cut()
		}
	}()
	w.answer(rw, r, host)
	complete = true
}

func (w *Web) answer(rw http.ResponseWriter, r *http.Request, host string) {
	w.served.Add(1)
	s := w.sites[host]
	if s == nil {
		http.Error(rw, "no such site here", http.StatusMisdirectedRequest)
		return
	}
	s.served.Add(1)
	(*s.handler.Load()).ServeHTTP(rw, r)
}

// Dial connects to the web, or to its name server.
func (w *Web) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return w.dial(ctx, network, address)
}

// Virtual reports whether the web is in virtual time: see Config.Network.
func (w *Web) Virtual() bool { return w.virtual }

// Port returns the port of every site.
func (w *Web) Port() uint16 { return w.port }

// URL returns the URL of a path (with its query) at a site.
func (w *Web) URL(host, path string) string {
	s := w.sites[host]
	if s == nil {
		s = &site{scheme: w.scheme, name: host, port: w.port}
	}
	name := s.name
	if s.address.IsValid() && w.reach != ByName {
		name = s.address.String()
	}
	return s.scheme + "://" + name + ":" + strconv.Itoa(int(s.port)) + path
}

// Authorities returns the root certificate of a web with TLS, in PEM form; nil: it has none.
func (w *Web) Authorities() []byte { return w.authorities }

// ResolverAddr returns the host:port of the DNS server, for UDP and TCP.
func (w *Web) ResolverAddr() string { return w.dns.addr() }

// Sites returns the host names, in the order of the Config.
func (w *Web) Sites() []string { return slices.Clone(w.hosts) }

// Address returns the address of a site, or the zero Addr for an unknown host.
func (w *Web) Address(host string) netip.Addr {
	if s := w.sites[host]; s != nil {
		return s.address
	}
	return netip.Addr{}
}

// SetHandler replaces the handler of a site from the next request on. It ignores a host that the
// web does not serve.
func (w *Web) SetHandler(host string, h http.Handler) {
	if s := w.sites[host]; s != nil {
		s.handler.Store(&h)
	}
}

// SetAnswer changes the A and AAAA records of a name, known or not. Without addresses, DNS answers
// NXDOMAIN. Every address of the web serves every site, so a site can be moved to the address of
// another.
func (w *Web) SetAnswer(host string, addrs ...netip.Addr) { w.dns.set(host, addrs) }

// Settle waits until the web has finished with all clients: each of their connections is accepted
// and closed, and every request on it is handled and recorded. A process that was killed, or broke
// its requests off, may have sent bytes that a busy web reads only later. Settle returns ctx's
// error if clients stay. A web without a record cannot tell, and does not wait.
func (w *Web) Settle(ctx context.Context) error {
	for _, a := range w.listening {
		// Connections are accepted in their order: when this one is accepted, all earlier ones are.
		c, err := w.dial(ctx, a.Network(), a.String())
		if err != nil {
			return fmt.Errorf("testweb: settle: %w", err)
		}
		end := context.AfterFunc(ctx, func() { _ = c.Close() })
		err = c.(interface{ CloseWrite() error }).CloseWrite()
		if err == nil {
			_, err = io.Copy(io.Discard, c)
		}
		end()
		if err = errors.Join(err, c.Close()); err != nil {
			return fmt.Errorf("testweb: settle: %w", err)
		}
	}
	for w.recorder.open.Load() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("testweb: settle: %d connections are open: %w", w.recorder.open.Load(), ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// Lookups returns the number of DNS questions about a name.
func (w *Web) Lookups(host string) int { return w.dns.lookups(host) }

// Served returns the number of requests that reached the web so far.
func (w *Web) Served() int64 { return w.served.Load() }

// Connections returns the number of connections that were made to the web so far.
func (w *Web) Connections() int64 { return w.recorder.conns.Load() }

// ServedBy returns the number of requests that reached one site so far.
func (w *Web) ServedBy(host string) int64 {
	if s := w.sites[host]; s != nil {
		return s.served.Load()
	}
	return 0
}

// Requests returns the record so far, in the order of Start.
func (w *Web) Requests() Log { return w.recorder.snapshot() }

// Dropped returns the number of requests beyond MaxRequests, which are not in the record.
func (w *Web) Dropped() int64 { return w.recorder.dropped.Load() }
