package crawlcheck

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client is a small crawler that keeps all rules, for the tests of the stations. With a fault, which has the name of a
// station, it breaks the rule of that station alone.
type client struct {
	lab   *Lab
	fault string
	agent string
	http  *http.Client
	ctx   context.Context
	work  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	sites map[string]*site
	slots map[netip.Addr]chan struct{} // requests at a time to an address
}

// site is a host with what the client knows of it. One goroutine at a time uses the fields after rules.
type site struct {
	c       *client
	name    string
	queue   []link // guarded by c.mu, as known and running
	known   map[string]int
	running bool

	rules             *ruleSet
	fresh             time.Time // until when rules are
	walled            bool
	next              time.Time
	delay             time.Duration
	failures, refused int
	requests          int
	took              time.Duration
	redirecting       map[string]bool
	etags             map[string]string
	areas             map[string]int
	parallel          sync.WaitGroup
}

// link is a URL that waits.
type link struct {
	url  string
	hops int
}

const pause = time.Second

func newClient(ctx context.Context, lab *Lab, fault string, before *client) *client {
	c := &client{lab: lab, fault: fault, ctx: ctx, agent: "refbot/1.0 (+https://ref.test/bot)",
		sites: make(map[string]*site), slots: make(map[netip.Addr]chan struct{})}
	switch fault {
	case "honesty-token":
		c.agent = "(+https://ref.test/bot)"
	case "honesty-contact":
		c.agent = "refbot/1.0"
	case "honesty-browser":
		c.agent = "refbot/1.0 (+https://ref.test/bot) Chrome/120.0 Safari/537.36"
	}
	var proxy func(*http.Request) (*url.URL, error)
	if lab.o.Proxy {
		to, err := url.Parse(lab.Web.Proxy())
		proxy = func(*http.Request) (*url.URL, error) { return to, err }
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(lab.authority.PEM())
	c.http = &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true, Proxy: proxy,
			TLSClientConfig: &tls.Config{RootCAs: roots},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				host, port, err := net.SplitHostPort(address)
				if err != nil {
					return nil, err
				}
				if a := lab.Web.Address(host); a.IsValid() {
					host = a.String()
				}
				return lab.Web.Dial(ctx, network, net.JoinHostPort(host, port))
			}},
	}
	if before != nil { // it was killed; this is what its disk had
		for name, s := range before.sites {
			c.sites[name] = &site{c: c, name: name, queue: s.queue, known: s.known, rules: s.rules, fresh: s.fresh,
				walled: s.walled, next: s.next, delay: s.delay, failures: s.failures, refused: s.refused,
				requests: s.requests, redirecting: s.redirecting, etags: s.etags, areas: s.areas}
			s.forget(c.sites[name])
		}
	}
	return c
}

// forget loses what a fault has not written to disk.
func (s *site) forget(now *site) {
	switch fault := s.c.fault; {
	case fault == "restart-pace" && strings.HasPrefix(s.name, fault):
		now.next = time.Time{}
	case fault == "restart-lost" && strings.HasPrefix(s.name, fault):
		now.queue = nil
	case fault == "restart-again" && strings.HasPrefix(s.name, fault),
		fault == "needless-unchanged" && len(s.etags) > 0:
		for u := range s.known {
			now.queue = append(now.queue, link{url: u})
		}
		now.areas = make(map[string]int)
	}
}

// crawl requests all that it finds, beginning with these URLs, and returns when nothing is left.
func (c *client) crawl(seeds ...string) {
	for _, s := range seeds {
		c.add(s, "", 0)
	}
	c.mu.Lock()
	for _, s := range c.sites {
		c.start(s)
	}
	c.mu.Unlock()
	c.work.Wait()
	c.http.CloseIdleConnections()
}

// add queues a URL that was found on a page.
func (c *client) add(raw, on string, hops int) {
	base, _ := url.Parse(on)
	u, err := base.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	if u.Path == "" {
		u.Path = "/"
	}
	key := *u
	if key.Fragment = ""; c.fault == "needless-fragments" {
		key.Fragment = u.Fragment
	}
	if q := key.Query(); q.Has("PHPSESSID") && c.fault != "traps-session" {
		q.Del("PHPSESSID")
		key.RawQuery = q.Encode()
	}
	id := key.String()
	if c.fault == "needless-spelling" && (strings.Contains(raw, "./") || strings.Contains(raw, "/..")) {
		id += " " + raw
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sites[u.Host]
	if s == nil {
		s = &site{c: c, name: u.Host, known: make(map[string]int), redirecting: make(map[string]bool),
			etags: make(map[string]string), areas: make(map[string]int)}
		c.sites[u.Host] = s
	}
	s.known[id]++
	isNew, from := s.known[id] == 1, s.known[id] == 2 && base.Path != "/" && hops == 0 && on != ""
	again := c.fault == "needless-twice" && from ||
		c.fault == "needless-redirected" && hops > 0 && !s.redirecting[key.String()] && s.known[id] < 3 ||
		c.fault == "traps-redirect-loop" && hops > 0 && s.redirecting[key.String()]
	if again && c.fault == "traps-redirect-loop" {
		hops = 1
	}
	if (isNew || again) && (hops <= 5 || c.fault == "traps-redirect-chain") && s.admits(&key, hops) {
		s.queue = append(s.queue, link{key.String(), hops})
		c.start(s)
	}
}

var date = regexp.MustCompile(`/\d{4}/\d\d$`)

// admits reports whether an area of the site has room for a URL.
func (s *site) admits(u *url.URL, hops int) bool {
	fault := s.c.fault
	if fault == "traps-calendar" && date.MatchString(u.Path) || fault == "traps-session" && u.RawQuery != "" ||
		fault == "traps-path" && strings.Contains(u.Path, "more/") || hops > 0 &&
		(fault == "traps-redirect-chain" || fault == "traps-redirect-loop") ||
		fault == "traps-maze" && strings.Contains(u.Path, "/m/") {
		return true
	}
	parts := strings.SplitN(u.Path, "/", 4)
	area := strings.Join(parts[:min(3, len(parts))], "/")
	s.areas[area]++
	return s.areas[area] <= 25
}

// start starts the goroutine of a site that has URLs. The caller holds mu.
func (c *client) start(s *site) {
	if s.running || len(s.queue) == 0 {
		return
	}
	if c.fault == "traps-maze" && strings.HasPrefix(s.name, "n2-traps-maze") {
		return
	}
	s.running = true
	c.work.Go(s.run)
}

// run requests the URLs of a site one after the other.
func (s *site) run() {
	for {
		s.c.mu.Lock()
		if s.c.ctx.Err() != nil || len(s.queue) == 0 {
			s.running = false
			s.c.mu.Unlock()
			return
		}
		l := s.queue[0]
		s.c.mu.Unlock()
		if s.visit(l) {
			return
		}
		s.c.mu.Lock()
		if s.c.ctx.Err() == nil { // else it is not done
			s.queue = s.queue[1:]
		}
		s.c.mu.Unlock()
	}
}

// visit requests a URL, unless it is not allowed, and reports whether the site is to be left alone.
func (s *site) visit(l link) (leave bool) {
	u, _ := url.Parse(l.url)
	early := s.c.fault == "robots-first" && strings.HasPrefix(s.name, "robots-first") && s.rules == nil
	again := s.rules != nil && (s.c.fault == "robots-cached" && s.rules.status == 200 ||
		s.c.fault == "robots-404" && s.rules.status == 404)
	if !early && (s.rules == nil || again || time.Now().After(s.fresh)) {
		s.fetchRobots(u)
	}
	rules := s.rules
	if s.c.fault == "robots-origin" && strings.HasPrefix(s.name, "n") {
		_, first, _ := strings.Cut(s.name, "-")
		s.c.mu.Lock()
		if other := s.c.sites[first]; other != nil && other.rules != nil {
			rules = other.rules
		}
		s.c.mu.Unlock()
	}
	if s.c.fault == "robots-scheme" && u.Scheme == "https" {
		s.c.mu.Lock()
		for host, other := range s.c.sites {
			if name, _, _ := strings.Cut(host, ":"); name == u.Hostname() && other != s && other.rules != nil {
				rules = other.rules
			}
		}
		s.c.mu.Unlock()
	}
	if early {
		s.get(l, u)
		s.fetchRobots(u)
		return false
	}
	if rules == nil || s.walled {
		return true
	}
	if !rules.allows(u.EscapedPath(), s.c.fault) {
		return false
	}
	if s.c.fault == "pace-parallel" && s.took > 200*time.Millisecond && s.took < 450*time.Millisecond {
		at := s.next
		s.parallel.Go(func() {
			time.Sleep(time.Until(at))
			s.do("GET", u.String(), true)
		})
	}
	if s.c.fault == "needless-head" && s.requests < 3 {
		s.do("HEAD", u.String(), false)
	}
	s.get(l, u)
	s.parallel.Wait()
	return s.walled
}

// answer is a response with at most a mebibyte of its body.
type answer struct {
	*http.Response
	text string
	err  error // of the body, or of the request
}

// do makes a request when the site allows it.
func (s *site) do(method, to string, beside bool) answer {
	if !beside {
		select {
		case <-time.After(time.Until(s.next)):
		case <-s.c.ctx.Done():
			return answer{err: s.c.ctx.Err()}
		}
	}
	slot := s.c.slot(to)
	if s.c.fault != "pace-address" {
		slot <- struct{}{}
		defer func() { <-slot }()
	}
	r, err := http.NewRequestWithContext(s.c.ctx, method, to, nil)
	if err != nil {
		return answer{err: err}
	}
	r.Header.Set("User-Agent", s.c.agent)
	if s.c.fault == "honesty-same" && r.URL.Path == "/robots.txt" {
		r.Header.Set("User-Agent", "refbot/1.0 robots (+https://ref.test/bot)")
	}
	if tag := s.etags[to]; tag != "" && s.c.fault != "needless-unchanged" {
		r.Header.Set("If-None-Match", tag)
	}
	began := time.Now()
	a := answer{}
	if a.Response, a.err = s.c.http.Do(r); a.err == nil {
		a.text, a.err = s.read(a.Response)
	}
	if beside || s.c.ctx.Err() != nil {
		return a
	}
	s.took = time.Since(began)
	s.requests++
	s.schedule(began, a)
	return a
}

func (s *site) read(r *http.Response) (string, error) {
	defer r.Body.Close()
	limit := int64(1 << 20)
	if s.c.fault == "bodies-endless" {
		limit = 40 << 20
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return "", err
		}
		body = z
	}
	b, err := io.ReadAll(io.LimitReader(body, limit))
	return string(b), err
}

// slot bounds the requests at a time to the address of a URL.
func (c *client) slot(to string) chan struct{} {
	u, _ := url.Parse(to)
	a := c.lab.Web.Address(u.Hostname())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots[a] == nil {
		c.slots[a] = make(chan struct{}, mostAddress)
	}
	return c.slots[a]
}

// schedule decides when the next request to the site may begin.
func (s *site) schedule(began time.Time, a answer) {
	now, fault := time.Now(), s.c.fault
	delay := max(pause, s.delay)
	page := a.Response == nil || a.Request.URL.Path != "/robots.txt"
	if failed := a.err != nil || a.StatusCode >= 500; failed {
		s.failures++
	} else if page {
		s.failures = 0
	}
	if fault != "pace-backoff" {
		delay <<= min(s.failures, 6)
	}
	if fault == "pace-gap" && strings.HasPrefix(s.name, fault) {
		delay /= 2
	}
	s.next = now.Add(delay)
	if fault == "pace-slow-host" && s.took > time.Second {
		s.next = began.Add(delay)
	}
	if a.Response == nil {
		return
	}
	if value := a.Header.Get("Retry-After"); value != "" {
		form, at := "date", time.Time{}
		if n, err := strconv.Atoi(value); err == nil {
			form, at = "seconds", now.Add(time.Duration(n)*time.Second)
		} else {
			at, _ = http.ParseTime(value)
		}
		if fault != "pace-retry-"+strconv.Itoa(a.StatusCode)+"-"+form && at.After(s.next) {
			s.next = at
		}
	}
	if page {
		s.noteWall(a)
	}
}

// noteWall leaves a site that refuses again and again.
func (s *site) noteWall(a answer) {
	kind := ""
	switch {
	case challenged(a):
		kind = "walls-challenge-" + strconv.Itoa(a.StatusCode)
	case a.StatusCode == 403 || a.StatusCode == 429:
		kind = "walls-" + strconv.Itoa(a.StatusCode)
	case a.StatusCode >= 500 && s.c.fault != "pace-backoff":
		kind = "failure"
	}
	if s.refused++; kind == "" || kind == s.c.fault {
		s.refused = 0
	}
	s.walled = s.walled || s.refused >= 6
}

// challenged reports whether a response is the challenge of a wall.
func challenged(a answer) bool {
	return a.Response != nil && (a.Header.Get("cf-mitigated") != "" || a.Header.Get("x-amzn-waf-action") != "" ||
		strings.Contains(a.text, "anubis_challenge") || strings.Contains(a.text, "ddos-guard"))
}

// get requests a page and adds its links.
func (s *site) get(l link, u *url.URL) {
	a := s.do("GET", l.url, false)
	if s.c.ctx.Err() != nil {
		return
	}
	if a.err != nil && s.c.fault == "bodies-protocol" && s.rules != nil && a.Response == nil ||
		a.Response != nil && s.c.fault == "bodies-bomb" && a.Header.Get("Content-Encoding") == "gzip" ||
		a.Response != nil && s.c.fault == "bodies-garbage" && strings.Contains(a.Header.Get("Content-Type"), "-16") ||
		s.c.fault == "bodies-nesting" && strings.Count(a.text, "<div>") > 10_000 {
		s.walled = true
	}
	if a.err != nil || a.StatusCode >= 400 || challenged(a) {
		return
	}
	if tag := a.Header.Get("ETag"); tag != "" {
		s.etags[l.url] = tag
	}
	if to := a.Header.Get("Location"); to != "" {
		s.c.mu.Lock()
		s.redirecting[l.url] = true
		s.c.mu.Unlock()
		s.c.add(to, l.url, l.hops+1)
		return
	}
	s.links(l.url, a)
}

// fetchRobots requests the robots.txt, and keeps what is known if there is none.
func (s *site) fetchRobots(u *url.URL) {
	to, fault := u.Scheme+"://"+u.Host+"/robots.txt", s.c.fault
	hops := 5
	if fault == "robots-redirects" {
		hops = 2
	}
	first := s.rules == nil
	for {
		a := s.do("GET", to, false)
		status := 0
		if a.Response != nil {
			status = a.StatusCode
		}
		var timeout net.Error
		slow := errors.Is(a.err, os.ErrDeadlineExceeded) || errors.As(a.err, &timeout) && timeout.Timeout()
		lenient := fault == "robots-"+strconv.Itoa(status) && status != 404 ||
			fault == "robots-challenge-"+strconv.Itoa(status) && first && challenged(a) ||
			fault == "robots-timeout" && slow || fault == "robots-closed" && a.err != nil && status == 0 && !slow ||
			fault == "robots-cut" && a.err != nil && status == 200 ||
			fault == "robots-challenge-later" && !first && challenged(a)
		if next := ""; status >= 300 && status < 400 {
			next = a.Header.Get("Location")
			target, err := u.Parse(next)
			if hops--; err == nil && hops >= 0 && (fault != "robots-redirect" || target.Host == u.Host) {
				to = target.String()
				continue
			}
			lenient = true
		}
		switch {
		case s.c.ctx.Err() != nil:
		case lenient || status >= 400 && status < 500 && status != 429 && !challenged(a):
			s.rules = &ruleSet{status: status}
		case status == 200 && a.err == nil && !challenged(a):
			if first || fault != "robots-stricter" {
				s.rules = parseRules(a.text, fault)
			}
			s.delay = s.rules.delay
			if at := time.Now().Add(s.delay); at.After(s.next) {
				s.next = at
			}
		}
		if s.fresh = time.Now().Add(time.Hour); a.Response != nil {
			if age, is := strings.CutPrefix(a.Header.Get("Cache-Control"), "max-age="); is {
				n, _ := strconv.Atoi(age)
				s.fresh = time.Now().Add(time.Duration(n) * time.Second)
			}
		}
		return
	}
}

var (
	attributes = regexp.MustCompile(`(href|rel|action)="([^"]*)"`)
	metas      = regexp.MustCompile(`(?i)^meta name="([^"]*)" content="([^"]*)"$`)
)

// tags returns what stands between < and > in the elements that the client reads. An expression would take long for a
// long text.
func tags(text string) (all []string) {
	for _, tag := range strings.Split(text, "<")[1:] {
		tag, _, ends := strings.Cut(tag, ">")
		name, _, _ := strings.Cut(tag, " ")
		if ends && slices.Contains([]string{"a", "form", "meta"}, strings.ToLower(name)) {
			all = append(all, tag)
		}
	}
	return all
}

// links adds the links of a page.
func (s *site) links(on string, a answer) {
	fault := s.c.fault
	nofollow := func(text string) bool {
		return slices.ContainsFunc(strings.Split(strings.ToLower(text), ","), func(word string) bool {
			word = strings.TrimSpace(word)
			return word == "none" && fault != "directives-meta-none" || word == "nofollow"
		})
	}
	tag := a.Header.Get("X-Robots-Tag")
	own, is := strings.CutPrefix(tag, "refbot:")
	if is && fault != "directives-header-agent" && nofollow(own) ||
		!is && fault != "directives-header-nofollow" && nofollow(tag) {
		return
	}
	all := tags(a.text)
	for _, tag := range all {
		m := metas.FindStringSubmatch(tag)
		if m == nil {
			continue
		}
		name := strings.ToLower(m[1])
		skip := fault == "directives-meta-nofollow" && strings.ToLower(m[2]) == "nofollow" ||
			fault == "directives-meta-agent" && name == "refbot"
		if (name == "robots" || name == "refbot") && nofollow(m[2]) && !skip {
			return
		}
	}
	for _, tag := range all {
		values := make(map[string]string)
		for _, m := range attributes.FindAllStringSubmatch(tag, -1) {
			values[m[1]] = m[2]
		}
		if action := values["action"]; action != "" && fault == "needless-methods" {
			u, _ := url.Parse(on)
			target, _ := u.Parse(action)
			s.do("POST", target.String(), false)
		}
		if to := values["href"]; to != "" &&
			(fault == "directives-rel-nofollow" || !strings.Contains(values["rel"], "nofollow")) {
			s.c.add(to, on, 0)
		}
	}
}
