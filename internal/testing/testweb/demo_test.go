package testweb

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/temoto/robotstxt"
	"golang.org/x/net/html/charset"
)

// walker is a very simple crawler: level by level, without any delay. It knows nothing of the facts
// that it confirms.
type walker struct {
	t      *testing.T
	web    *Web
	client *http.Client
	rules  map[string]*robotstxt.RobotsData // by host and port

	mu     sync.Mutex // guards what follows
	status map[Ref]int
	found  []string
}

const walkers = 16

func (w *walker) walk(seeds []Ref, maxDepth int) {
	seen := make(map[string]bool)
	level := make([]string, 0, len(seeds))
	for _, s := range seeds {
		level = append(level, w.web.URL(s.Host, s.Path))
	}
	for depth := 0; depth <= maxDepth && len(level) > 0; depth++ {
		w.found = nil
		slots := make(chan struct{}, walkers)
		var wait sync.WaitGroup
		for _, page := range level {
			if seen[page] || !w.allowed(page) {
				continue
			}
			seen[page] = true
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				w.visit(page)
			})
		}
		wait.Wait()
		level = w.found
	}
}

// allowed may be called by one goroutine only.
func (w *walker) allowed(page string) bool {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "http" || !slices.Contains(w.web.Sites(), u.Hostname()) {
		return false
	}
	rules, known := w.rules[u.Host]
	if !known {
		rules = w.fetchRules(u.Host)
		w.rules[u.Host] = rules
	}
	return rules.TestAgent(u.RequestURI(), "amble")
}

func (w *walker) fetchRules(host string) *robotstxt.RobotsData {
	target := "http://" + host + "/robots.txt"
	for range 5 {
		response, body := get(w.t, w.client, target)
		if location, err := response.Location(); response.StatusCode/100 == 3 && err == nil {
			target = location.String()
			continue
		}
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
			body = ""
		}
		// RFC 9309 permits both, the library neither.
		body = strings.ReplaceAll(strings.TrimPrefix(body, "\ufeff"), " :", ":")
		data, err := robotstxt.FromStatusAndString(response.StatusCode, body)
		if err != nil {
			w.t.Fatalf("%s: %v", target, err)
		}
		return data
	}
	w.t.Fatalf("%s: too many redirects", target)
	return nil
}

// visit fetches a page until it responds without a server error, three times at most.
func (w *walker) visit(page string) {
	var links []string
	var status int
	for range 3 {
		response, body := get(w.t, w.client, page)
		if status = response.StatusCode; status >= 500 {
			continue
		}
		if status != 0 {
			links = w.links(response, body)
		}
		break
	}
	u, err := url.Parse(page)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status[Ref{u.Hostname(), u.RequestURI()}] = status
	w.found = append(w.found, links...)
}

func (w *walker) links(response *http.Response, body string) []string {
	base := response.Request.URL
	if location, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		return []string{location.String()}
	}
	contentType := response.Header.Get("Content-Type")
	if !strings.HasPrefix(contentType, "text/html") || body == "" {
		return nil
	}
	decoded, err := charset.NewReader(strings.NewReader(body), contentType)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	document, err := goquery.NewDocumentFromReader(decoded)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	if href, ok := document.Find("base[href]").Attr("href"); ok {
		base, _ = base.Parse(href)
	}
	if strings.Contains(document.Find("meta[name=robots]").AttrOr("content", ""), "nofollow") {
		return nil
	}
	var links []string
	add := func(ref string) {
		ref = strings.ReplaceAll(strings.TrimSpace(ref), `\`, "/")
		if u, err := base.Parse(ref); err == nil && u.Host != "" {
			u.Fragment = ""
			links = append(links, u.String())
		}
	}
	for selector, attribute := range map[string]string{
		"a[href]:not([rel=nofollow])": "href", "area[href]": "href", "iframe[src]": "src",
		"link[rel=next], link[rel=alternate], link[rel=canonical]": "href",
	} {
		document.Find(selector).Each(func(_ int, s *goquery.Selection) { add(s.AttrOr(attribute, "")) })
	}
	if content, ok := document.Find("meta[http-equiv=refresh]").Attr("content"); ok {
		add(content[strings.Index(content, "url=")+len("url="):])
	}
	return links
}

func TestDemoFactsAreTrue(t *testing.T) {
	for name, demo := range map[string]func() ([]Site, Facts){"one domain": Demo, "domains": DemoDomains} {
		t.Run(name, func(t *testing.T) { checkFacts(t, demo) })
	}
}

func checkFacts(t *testing.T, demo func() ([]Site, Facts)) {
	sites, facts := demo()
	web := start(t, Config{Sites: sites})
	w := &walker{
		t: t, web: web, client: newClient(t, web),
		rules: make(map[string]*robotstxt.RobotsData), status: make(map[Ref]int),
	}
	w.walk(facts.Seeds, facts.MaxDepth)
	log := finished(t, web)
	for _, wrong := range facts.Check(log) {
		t.Error(wrong)
	}
	for _, e := range facts.Must {
		if got := w.status[e.Ref]; got != e.Status {
			t.Errorf("%s: status %d, the facts say %d", e.Ref, got, e.Status)
		}
	}
	if early := log.BeforeRobots(); len(early) != 0 {
		t.Errorf("the walker fetched pages before it knew the rules: %+v", early)
	}
	for _, host := range web.Sites() {
		rules := w.rules[strings.TrimPrefix(web.URL(host, ""), "http://")]
		if got := rules.FindGroup("amble").CrawlDelay; got != facts.CrawlDelay[host] {
			t.Errorf("%s: Crawl-delay %v, the facts say %v", host, got, facts.CrawlDelay[host])
		}
	}
	for _, host := range facts.Outside {
		if web.Lookups(host) != 0 {
			t.Errorf("%s was looked up", host)
		}
	}
}

// The demo has what its documentation says, and is small enough to end within a minute.
func TestDemoSize(t *testing.T) {
	sites, facts := Demo()
	if len(sites) < 12 || len(facts.Seeds) != len(sites) || facts.Pages() < 400 {
		t.Errorf("%d hosts, %d seeds, %d pages; want at least 12 hosts, a seed for each, and 400 pages", len(sites),
			len(facts.Seeds), facts.Pages())
	}
	perHost := make(map[string]int)
	unique := make(map[Ref]bool)
	for _, e := range facts.Must {
		if unique[e.Ref] || e.under(facts.Never) || e.under(facts.MayUnder) || slices.Contains(facts.May, e.Ref) {
			t.Errorf("%s is in two lists", e.Ref)
		}
		unique[e.Ref] = true
		perHost[e.Host]++
	}
	for host, n := range perHost {
		if delay := max(facts.CrawlDelay[host], 200*time.Millisecond); n > 60 ||
			time.Duration(n)*delay > 20*time.Second {
			t.Errorf("%s: %d pages take more than 20 s, or are more than 60", host, n)
		}
	}
	again, _ := Demo()
	for i := range again {
		if again[i].Host != sites[i].Host {
			t.Errorf("a second demo has other hosts: %s, %s", again[i].Host, sites[i].Host)
		}
	}
}

func TestDemoTrapHasNoEnd(t *testing.T) {
	sites, _ := Demo()
	web := start(t, Config{Sites: sites})
	client := newClient(t, web)
	for _, month := range []int{1, 1000, 123_456_789} {
		_, body := get(t, client, web.URL("calendar.amble.test", fmt.Sprintf("/month/%d", month)))
		if next := fmt.Sprintf("\"/month/%d\"", month+1); !strings.Contains(body, next) {
			t.Errorf("month %d does not link to %s", month, next)
		}
	}
	for path, want := range map[string]int{"/month/x": 404, "/elsewhere": 404, "/month/7/day/15": 200,
		"/past/month/3": 200} {
		if response, _ := get(t, client, web.URL("calendar.amble.test", path)); response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, response.StatusCode, want)
		}
	}
}

func TestFactsCheck(t *testing.T) {
	facts := Facts{
		Must:     []Expected{{Ref{"a", "/"}, 200, 1}, {Ref{"a", "/flaky"}, 200, 2}},
		May:      []Ref{{"a", "/may"}},
		MayUnder: []Ref{{"a", "/month/"}},
		Never:    []Ref{{"a", "/private"}, {"b", "/"}},
	}
	good := []string{"a/robots.txt", "a/", "a/flaky", "a/flaky", "b/robots.txt", "a/month/7", "a/may",
		"a/.well-known/tdmrep.json"}
	for name, c := range map[string]struct{ fetched, want []string }{
		"right":   {good, nil},
		"missed":  {[]string{"a/flaky", "a/flaky"}, []string{"a/: fetched 0 times, must be 1"}},
		"gave up": {[]string{"a/", "a/flaky"}, []string{"a/flaky: fetched 1 times, must be 2"}},
		"forbidden": {append([]string{"b/x", "a/private/x"}, good...),
			[]string{"a/private/x: fetched, must never be", "b/x: fetched, must never be"}},
		"unexpected": {append([]string{"a/invented"}, good...),
			[]string{"a/invented: fetched, but nothing leads there"}},
	} {
		var log Log
		for _, path := range c.fetched {
			log = append(log, request(path[:1], path[1:], 0, 1))
		}
		if got := facts.Check(log); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
