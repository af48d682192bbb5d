package crawlcheck

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// The bounds of a run's record and of its connections. A crawler that goes beyond them loses its passes.
const (
	maxRequests = 20_000
	maxConns    = 512
)

// Options say which stations a Lab has, and how the crawler reaches them.
type Options struct {
	Seed  uint64 // decides paths, texts and the order of links and hosts
	Only  string // patterns as path.Match has them, with commas, those to leave out with !; empty: all stations
	Reach testweb.Reach
	Proxy bool   // hosts have names, and the crawler reaches them through the proxy
	Kill  bool   // the crawler will be killed and started again
	HTTPS bool   // the crawler trusts the authority of the web, or any
	Token string // the crawler's product token; empty: that of its User-Agent
	// Network is the network of the web; nil: the loopback.
	Network testweb.Network
}

// Lab is a web of stations. Any goroutine may call its methods.
type Lab struct {
	Web *testweb.Web

	o      Options
	active []*running
	homes  []string // all hosts but the hub, in the order of the links to them
	began  time.Time

	authority *testweb.Authority
}

// running is a station with its hosts.
type running struct {
	Station
	hosts []*host // none: it judges all requests, or it is not run
	least int
	not   need // what the run lacks for it; 0: it is run
}

// leastOfAll is the number of requests that a station without hosts of its own needs.
const leastOfAll = 5

// hub is the host of the page that links to all stations.
const hub = "start.test"

// ErrNoStation is the error of a pattern that no station has.
var ErrNoStation = errors.New("no station matches")

// New starts a web with stations. The caller closes it.
func New(o Options) (*Lab, error) {
	l := &Lab{o: o, began: time.Now()}
	var err error
	if l.authority, err = testweb.NewAuthority(l.began); err != nil {
		return nil, err
	}
	var homes, late []string
	sites := []testweb.Site{{Host: hub, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.serveHub(w, r)
	})}}
	for _, s := range Stations() {
		if ok, err := matches(o.Only, s.Name); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		one := l.prepare(s)
		l.active = append(l.active, one)
		for _, h := range one.hosts {
			site := testweb.Site{Host: h.name, Handler: http.HandlerFunc(h.serve), Group: h.group}
			if h.secure {
				site.Secure, site.Beside = l.authority.Config(), s.Name+".test"
			}
			sites = append(sites, site)
			if one.hosts[0].late {
				late = append(late, h.name)
			} else {
				homes = append(homes, h.name)
			}
		}
	}
	if len(l.active) == 0 {
		return nil, fmt.Errorf("%w %q", ErrNoStation, o.Only)
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	for _, list := range [][]string{homes, late} {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	homes = append(homes, late...)
	l.homes = homes
	web, err := testweb.New(testweb.Config{
		Sites: sites, Reach: o.Reach, MaxRequests: maxRequests, MaxConns: maxConns, Network: o.Network,
	})
	if err != nil {
		return nil, err
	}
	l.Web = web
	return l, nil
}

// matches reports whether a name matches one of the patterns, and none of those that begin with !.
func matches(patterns, name string) (bool, error) {
	is := patterns == "" || patterns[0] == '!'
	for p := range strings.SplitSeq(patterns, ",") {
		p, out := strings.CutPrefix(p, "!")
		ok, err := path.Match(p, name)
		if err != nil {
			return false, err
		}
		is = is && !(ok && out) || ok && !out
	}
	return is, nil
}

// prepare builds the hosts of a station.
func (l *Lab) prepare(s Station) *running {
	one := &running{Station: s, least: 1}
	if s.needs == names && (l.o.Reach != testweb.ByName || l.o.Proxy) ||
		s.needs == kill && !l.o.Kill || s.needs == secure && !l.o.HTTPS {
		one.not = s.needs
	}
	if s.build == nil {
		one.least = leastOfAll
		return one
	}
	h := newHost(l, s.Name+".test")
	s.build(h)
	h.late = slices.Contains([]string{"traps", "walls", "bodies"}, s.Group()) ||
		slices.Contains([]string{"robots-timeout", "robots-stricter", "robots-challenge-later"}, s.Name)
	all := append([]*host{h}, h.others...)
	for _, b := range all {
		if b.pages["/"] == nil {
			b.pages["/"] = b.html(http.StatusOK, "", b.home()...)
		}
		if one.least += len(b.opened); b.least > 0 {
			one.least = b.least
		}
	}
	if one.not == 0 {
		one.hosts = all
	}
	return one
}

// token returns the product token of the crawler with this User-Agent.
func (l *Lab) token(agent string) string {
	if l.o.Token != "" {
		return l.o.Token
	}
	if token := ProductToken(agent); token != "" {
		return token
	}
	return "no-token"
}

func (l *Lab) serveHub(w http.ResponseWriter, r *http.Request) {
	switch r.RequestURI {
	case "/robots.txt":
		testweb.Robots("User-agent: *\nDisallow:\n").ServeHTTP(w, r)
	case "/":
		testweb.Page("The stations of crawlcheck", l.Homes()...).ServeHTTP(w, r)
	default:
		testweb.Status(http.StatusNotFound).ServeHTTP(w, r)
	}
}

// Start returns the URL of the page that links to all stations.
func (l *Lab) Start() string { return l.Web.URL(hub, "/") }

// Homes returns the URLs of the first pages of all hosts.
func (l *Lab) Homes() (urls []string) {
	for _, name := range l.homes {
		urls = append(urls, l.Web.URL(name, "/"))
	}
	return urls
}

// Closed returns the URLs of pages that are linked, and that the crawler may not request.
func (l *Lab) Closed() (urls []string) {
	for _, one := range l.active {
		for _, h := range one.hosts {
			for _, path := range h.shut {
				urls = append(urls, l.Web.URL(h.name, h.own(path)))
			}
		}
	}
	return urls
}

// Unseen returns the names of the stations that got no request yet, and the number of all that are run.
func (l *Lab) Unseen() (unseen []string, of int) {
	for _, one := range l.active {
		if len(one.hosts) == 0 {
			continue
		}
		of++
		if l.Web.ServedBy(one.hosts[0].name) == 0 {
			unseen = append(unseen, one.Name)
		}
	}
	return unseen, of
}

// KillTime reports whether the crawler is in the middle of the stations of a restart: all of them have begun.
func (l *Lab) KillTime() bool {
	served := int64(0)
	for _, one := range l.active {
		if one.Group() == "restart" && len(one.hosts) > 0 {
			n := l.Web.ServedBy(one.hosts[0].name)
			if n < 2 {
				return false
			}
			served += n
		}
	}
	return served > killAfter
}

// Close ends the web.
func (l *Lab) Close() error { return l.Web.Close() }
