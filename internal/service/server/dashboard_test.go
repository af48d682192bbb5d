package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/browser"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// busyCrawl is a crawl that has enough to do for the length of a test, with its dashboard.
type busyCrawl struct {
	web *testweb.Web
	url string
}

func startBusyCrawl(t *testing.T) *busyCrawl {
	t.Helper()
	var sites []testweb.Site
	for h := range 12 {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private\n")}
		if h == 3 {
			routes["/robots.txt"] = testweb.Robots("User-agent: *\nCrawl-delay: 2\nDisallow: /private\n")
		}
		links := []string{"/private", "/missing"}
		for p := range 400 {
			path := "/page-" + strconv.Itoa(p)
			links = append(links, path)
			routes[path] = testweb.Page("a page")
		}
		routes["/"] = testweb.Page("the first page", links...)
		sites = append(sites, testweb.Site{Host: fmt.Sprintf("site-%d.test", h), Handler: routes})
	}
	extra := testweb.Site{Host: "extra.test", Handler: testweb.Routes{"/": testweb.Page("a site for later")}}
	web := testweb.Serve(t, testweb.Config{Sites: append(sites, extra)})
	o := crawl.DefaultOptions()
	o.MaxRate = 5000 // for a tile
	o.DataDir, o.Archive.Dir, o.Fetch.UserAgent = t.TempDir(), t.TempDir(), "amble-test"
	o.Fetch.AllowPrivate, o.Fetch.Resolver = true, web.ResolverAddr()
	o.ExitWhenDone, o.Frontier.Politeness.Delay = false, 200*time.Millisecond
	engine := must.Get(crawl.Open(o, slog.New(slog.DiscardHandler)))(t)
	s := must.Get(Start(Options{Listen: "127.0.0.1:0", DataDir: o.DataDir, Now: time.Now}, engine))(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var seeds []crawl.Seed
	for _, site := range sites {
		seeds = append(seeds, crawl.Seed{URL: testkit.Parse(t, web.URL(site.Host, "/"))})
	}
	go func() {
		defer close(ended)
		_, err := engine.Run(ctx, seeds)
		assert.True(t, err == nil, "%v", err)
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		assert.NoError(t, errors.Join(s.Close(closing), engine.Close()))
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return &busyCrawl{web: web, url: "http://" + s.Address()}
}

// fetched is the number on the tile of that name.
const fetched = `Number([...document.querySelectorAll(".tiles div")].find((x) => x.textContent.startsWith("Fetched"))` +
	`.querySelector("dd").textContent.replaceAll(",", ""))`

func TestDashboard(t *testing.T) {
	c := startBusyCrawl(t)
	b := browser.Open(t)
	b.Show(c.url+"/", 1280, false, `document.querySelectorAll(".uplot").length === 3 && `+fetched+` > 20`)
	first := b.Text(`String(` + fetched + `)`)
	b.Wait(fetched + ` > ` + first)
	b.Wait(`document.querySelectorAll(".fixed tbody tr a").length > 5`)
	b.Wait(`document.querySelector("#state").textContent === "running"`)
	b.Wait(`document.body.innerText.includes("0 gaps shorter than the delay in force")`)
	b.Wait(`[...document.querySelectorAll(".tiles div")].filter((x) => !x.hidden).map((x) => x.textContent)` +
		`.filter((text) => text.startsWith("Limit")).join() === "Limit: requests/s5000"`)
	// what has the focus keeps it when a status renews the list around it
	b.Text(`(window.held = document.querySelector("main td a[href^='#/hosts/']")).focus() ?? ""`)
	b.Wait(`!window.held.isConnected`)
	focus := b.Text(`document.activeElement.getAttribute("href") ?? "lost"`)
	assert.True(t, strings.HasPrefix(focus, "#/hosts/"), "the focus is on %s", focus)
	b.Picture("dashboard", 40*time.Second)
	b.Show(c.url+"/#/hosts", 1280, false, `document.querySelectorAll("tbody tr").length === 12`)
	b.Show(c.url+"/#/hosts/contains=site-1&sort=waiting", 1280, false,
		`document.querySelectorAll("tbody tr").length === 3`)
	b.Wait(`document.querySelector("caption").textContent === "3 of 3"`)
	b.Show(c.url+"/#/hosts/site-3.test", 1280, true, `document.body.innerText.includes("Crawl-delay: 2")`)
	b.Wait(`document.querySelectorAll(".timeline li a").length > 0`)
	b.Picture("host", 0)
	b.Text(`document.querySelector("details summary").click() ?? ""`)
	b.Wait(`document.querySelector("details pre").textContent.includes("Crawl-delay: 2\nDisallow: /private")`)
	b.Text(`document.getElementById("query").value = "Site-7.test", ` +
		`document.querySelector("#search button").click() ?? ""`)
	b.Wait(`document.querySelector("h1").textContent === "site-7.test"`)
	b.Show(c.url+"/#/find/site-1", 1280, false, `document.querySelectorAll("h2").length === 2`)
	names := b.Text(`[...document.querySelectorAll("tbody a[href^='#/hosts/']")].map((a) => a.textContent).join()`)
	assert.Equal(t, names, "site-1.test,site-10.test,site-11.test", "the hosts with site-1 in their names")
	b.Wait(`document.querySelectorAll("tbody a[href^='#/url/']").length === 50`)
	b.Show(c.url+"/#/find/nowhere", 1280, false, `document.querySelectorAll("h2").length === 2`)
	b.Wait(`[...document.querySelectorAll(".list p.quiet")].map((x) => x.textContent).join() === "none,none"`)
	// what a status counts needs attention, also when it stands in no list
	b.Text(`import("/attention.js").then((m) => { const a = m.attention({ signal: null, fail() {} });` +
		`a.status({ hosts: 10000, host_states: { failing: 1 }, urls: {} }); window.wanting = a.node; }) && ""`)
	b.Wait(`window.wanting?.textContent.includes("1 hostfailing: they wait after failures")`)
	b.Show(c.url+"/#/url/"+"http%3A%2F%2Fsite-3.test%3A"+c.port(t)+"%2Fprivate", 1280, false,
		`document.body.innerText.includes("not allowed") && document.body.innerText.includes("Disallow: /private")`)
	b.Show(c.url+"/#/url/http%3A%2F%2Fnowhere.test%2F", 1280, false,
		`document.querySelector("h1").textContent.includes("nowhere.test")`)
	said := b.Text(`document.querySelector("main").innerText`)
	assert.True(t, !strings.Contains(said, "not allowed") && !strings.Contains(said, "Found\n") &&
		!strings.Contains(said, "[object Object]"), "of an unknown URL the page says %s", said)
	b.Text(`import("/dom.js").then((m) => { window.none = [m.facts([["a", ""], ["b", null]]), m.bars([])]; }) && ""`)
	b.Wait(`window.none?.every((list) => list.tagName !== "DL") === true`)
	b.Clean(c.url)
}

// port is that of the web.
func (c *busyCrawl) port(t *testing.T) string {
	t.Helper()
	u := testkit.Parse(t, c.web.URL("site-3.test", "/"))
	return strconv.Itoa(int(u.Port()))
}

// indentations are those of the values in the rows of the lists, which are cards there.
const indentations = `[...new Set([...document.querySelectorAll("tbody td")]` +
	`.filter((td) => td.offsetParent && !td.matches(".text:first-child")).map((td) => {` +
	`const r = document.createRange(); r.selectNodeContents(td);` +
	`return Math.round(r.getBoundingClientRect().left - td.getBoundingClientRect().left); }))].join()`

// TestDashboardOnAPhone: nothing is wider than a small screen, in the dark too, all values of a list stand at one
// indentation, and the keyboard reaches the controls.
func TestDashboardOnAPhone(t *testing.T) {
	c := startBusyCrawl(t)
	b := browser.Open(t)
	for _, page := range []string{"/", "/#/hosts", "/#/hosts/site-3.test", "/#/urls", "/#/fetches", "/#/optouts"} {
		b.Show(c.url+page, 360, true, `document.querySelectorAll("main .panel").length > 0`)
		assert.Equal(t, b.Text(`String(document.documentElement.scrollWidth)`), "360", page, "wide")
		if page == "/#/hosts" || page == "/#/urls" {
			b.Wait(`document.querySelectorAll("tbody tr").length > 3`)
			indented := b.Text(indentations)
			assert.True(t, !strings.Contains(indented, ","), "values of %s are indented by %s", page, indented)
		}
		if page == "/" {
			b.Wait(`document.querySelectorAll(".uplot").length === 3`)
			b.Picture("phone", 5*time.Second)
		}
	}
	assert.Equal(t, b.Text(`getComputedStyle(document.body).backgroundColor`), "rgb(18, 23, 21)",
		"the ground in the dark")
	assert.Equal(t, b.Text(`document.body.focus(), document.querySelector("a, button, input").className`), "skip",
		"the first stop of the keyboard not the way past the header")
	b.Clean(c.url)
}

// TestDashboardControls: what the buttons say is what the servers of the crawl see.
func TestDashboardControls(t *testing.T) {
	c := startBusyCrawl(t)
	b := browser.Open(t)
	b.Show(c.url+"/", 1280, false, fetched+` > 20`)
	b.Press("Pause")
	b.Wait(`document.querySelector("#state").textContent === "paused"`)
	c.quiet(t, "")
	b.Wait(`[...document.querySelectorAll("main button")].some((x) => x.textContent === "Resume")`)
	b.Press("Resume")
	b.Wait(`document.querySelector("#state").textContent === "running"`)
	before := len(c.web.Requests())
	b.Wait(fetched + ` > ` + b.Text(`String(`+fetched+`)`))
	assert.Not(t, len(c.web.Requests()), before, "no request arrives after the crawl was resumed")

	b.Show(c.url+"/#/hosts/site-5.test", 1280, false, `document.querySelectorAll(".timeline li a").length > 0`)
	b.Press("Pause")
	b.Wait(`[...document.querySelectorAll("main button")].some((x) => x.textContent === "Resume") && ` +
		`document.body.innerText.includes("pause")`)
	c.quiet(t, "site-5.test")
	b.Press("Resume")
	b.Wait(`![...document.querySelectorAll("main button")].some((x) => x.textContent === "Resume")`)
	// Enter in the untouched dialog changes nothing: what is in force, a backoff too, is no proposal
	b.Text(`[...document.querySelectorAll("main button")].find((x) => x.textContent === "Set delay").click() ?? ""`)
	b.Wait(`document.querySelector("#dialog small").textContent.startsWith("In force now: 200\u00a0ms")`)
	b.Text(`document.querySelector("#dialog button[value=yes]").click() ?? ""`)
	const state = `document.querySelector("#dialog").open + ":" + document.querySelector("#dialog input").value`
	assert.Equal(t, b.Text(state), "true:", "after Enter in the untouched dialog")
	b.Text(`document.querySelector("#dialog").close() ?? ""`)
	b.Press("Set delay", "seconds", "0.7")
	b.Wait(`document.body.innerText.includes("set-delay")`)
	before = len(c.arrived("site-5.test"))
	c.wait(t, "requests", func() bool { return len(c.arrived("site-5.test")) > before+3 })
	assert.AtMost(t, len(c.arrived("site-5.test")[before:].ShortGaps(700*time.Millisecond)), 0,
		"with a delay of 0.7 s")
	b.Press("Drop queue")
	b.Wait(`document.body.innerText.includes("excluded")`)

	b.Show(c.url+"/#/hosts/contains=site-8", 1280, false, `document.querySelectorAll("tbody tr").length === 1`)
	b.Text(`document.querySelector("tbody input").click() ?? ""`)
	b.Press("Pause")
	b.Wait(`document.querySelector("#notice").innerText === "site-8.test is paused"`)
	c.quiet(t, "site-8.test")
	b.Text(`document.querySelector("tbody input").click() ?? ""`)
	b.Press("Delete URLs")
	b.Wait(`document.querySelector("#notice").innerText === "The URLs of site-8.test are deleted"`)
	b.Wait(`document.querySelector("tbody td[data-title=URLs]").textContent === "0"`)

	// what is chosen is what is meant, by the keyboard too, and its host can be told to wait
	c.wait(t, "a missing page", func() bool {
		return strings.Contains(c.get(t, "/api/v1/urls?host=site-9.test&state=failed"), "/missing")
	})
	b.Show(c.url+"/#/urls/host=site-9.test&contains=/missing", 1280, false,
		`document.querySelector("tbody td[data-title=State]")?.textContent === "failed"`)
	before = len(c.arrived("site-9.test").Path("/missing"))
	b.Text(`document.querySelector("tbody input").focus() ?? ""`)
	b.Type(" ")
	b.Press("Retry chosen")
	b.Wait(`document.querySelector("#notice").innerText === "URLs: 1 put back"`)
	c.wait(t, "a request", func() bool { return len(c.arrived("site-9.test").Path("/missing")) > before })
	b.Text(`document.querySelector("tbody input").click() ?? ""`)
	b.Press("Pause hosts")
	b.Wait(`document.querySelector("#notice").innerText === "site-9.test is paused"`)
	c.quiet(t, "site-9.test")

	b.Text(`document.querySelector("tbody input").click() ?? ""`)
	b.Press("Drop chosen")
	b.Wait(`document.querySelector("#notice").innerText === "1 of 1 URLs were dropped"`)
	b.Wait(`document.querySelector("tbody td[data-title=State]").textContent === "excluded"`)

	const missing = "/#/urls/status=404&contains=/missing"
	b.Show(c.url+missing, 1280, false, `document.querySelectorAll("tbody tr a").length > 1 && // and no earlier list
		document.querySelector("a.button").getAttribute("href") ===
			"/api/v1/export?status=404&contains=%2Fmissing&format=csv"`)
	before = len(c.missing())
	b.Press("Retry these")
	b.Wait(`/^[1-9][0-9]* of [1-9][0-9,]* inspected URLs were put back$/` +
		`.test(document.querySelector("#notice").innerText)`)
	c.wait(t, "requests", func() bool { return len(c.missing()) > before })
	b.Show(c.url+"/#/optouts", 1280, false, `document.body.innerText.includes("0 in all")`)
	b.Press("Add", "value", "site-7.test", "reason", "<b>mail</b>")
	b.Wait(`document.body.innerText.includes("1 in all") && document.body.innerText.includes("<b>mail</b>")`)
	c.quiet(t, "site-7.test")
	b.Press("Remove")
	b.Wait(`document.body.innerText.includes("0 in all")`)

	b.Show(c.url+"/#/seeds", 1280, false, `document.querySelectorAll("tbody tr").length === 12`)
	b.Press("Add seeds", "list", c.web.URL("extra.test", "/")+" tags=late")
	b.Wait(`document.body.innerText.includes("13 of 13") && document.body.innerText.includes("tags=late")`)
	b.Wait(`document.querySelector("#notice").innerText === "Seeds: 1 added"`)
	c.wait(t, "requests to the new site", func() bool { return len(c.arrived("extra.test").Pages()) > 0 })
	b.Clean(c.url)

	b.Show(c.url+"/", 1280, false, fetched+` > 20`)
	b.Press("Stop")
	b.Wait(`document.querySelector("#state").textContent === "ended"`)
	b.Wait(`/^The crawl has ended at .* UTC(: it was stopped)?[.] [1-9][0-9,]* URLs fetched/` +
		`.test(document.querySelector("#notice").innerText)`)
}

// missing returns the requests for pages that do not exist.
func (c *busyCrawl) missing() (log testweb.Log) {
	for _, r := range c.web.Requests() {
		if r.Path == "/missing" {
			log = append(log, r)
		}
	}
	return log
}

// arrived returns the requests for a host; no host: all.
func (c *busyCrawl) arrived(host string) testweb.Log {
	if host == "" {
		return c.web.Requests()
	}
	return c.web.Requests().Host(host)
}

// quiet checks that no request arrives after those that were in flight, while the crawl goes on: its
// status does, and if the pause is that of one host, so do the requests for others.
func (c *busyCrawl) quiet(t *testing.T, host string) {
	t.Helper()
	c.landed(t)
	before, others := len(c.arrived(host)), len(c.arrived("site-6.test"))
	if c.landed(t); host != "" {
		c.wait(t, "requests for another host", func() bool { return len(c.arrived("site-6.test")) > others+3 })
	}
	assert.AtMost(t, len(c.arrived(host))-before, 0, "requests arrived during a pause")
}

// landed waits until all requests have ended that are in flight now.
func (c *busyCrawl) landed(t *testing.T) {
	t.Helper()
	since := time.Now()
	c.wait(t, "the end of all requests", func() bool {
		var status crawl.Status
		must.Do(t, json.Unmarshal([]byte(c.get(t, "/api/v1/status")), &status))
		return status.At.After(since) && status.InFlight == 0
	})
}

// get returns what the API says.
func (c *busyCrawl) get(t *testing.T, path string) string {
	t.Helper()
	resp := must.Get(http.Get(c.url + path))(t)
	body, err := io.ReadAll(resp.Body)
	must.Do(t, errors.Join(err, resp.Body.Close()))
	return string(body)
}

// wait waits until ok.
func (c *busyCrawl) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		must.True(t, !time.Now().After(limit), "waited in vain for %s", what)
	}
}

// BenchmarkDashboard crawls over a large store without any delay, as fast as the machine lets it
// (see startSized), and compares slices of that with a browser and slices without: off, on, on,
// off, so that what drifts counts for both. The browser has the live stream open and goes from page
// to page, one each second; a host page requests its host again every other second; /metrics is
// scraped in between. slower is the part of the requests that the crawl does not make meanwhile.
func BenchmarkDashboard(b *testing.B) {
	const slice = 5 * time.Second
	c := startSized(b, 0)
	time.Sleep(slice) // until it has its pace; a benchmark has no verdict
	var off, on float64
	for b.Loop() {
		off += c.requestsIn(slice)
		ctx, leave := context.WithCancel(context.Background())
		var browser sync.WaitGroup
		browser.Go(func() { c.watch(b, ctx) })
		browser.Go(func() { c.browse(b, ctx) })
		on += c.requestsIn(slice)
		on += c.requestsIn(slice)
		leave()
		browser.Wait()
		off += c.requestsIn(slice)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(off/float64(2*b.N)/slice.Seconds(), "requests/s-off")
	b.ReportMetric(on/float64(2*b.N)/slice.Seconds(), "requests/s-on")
	b.ReportMetric(100*(1-on/off), "%-slower")
}

// requestsIn counts the requests that arrive at the crawled servers in a slice of real time.
func (c *sizedCrawl) requestsIn(slice time.Duration) float64 {
	before := c.web.Served()
	time.Sleep(slice)
	return float64(c.web.Served() - before)
}

// watch reads the live stream.
func (c *sizedCrawl) watch(b *testing.B, ctx context.Context) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.server.Address()+"/api/v1/events", nil)
	if err != nil {
		b.Error(err)
		return
	}
	response, err := c.client.Do(q)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // until the browser leaves
}

// browse makes the requests of each page of the dashboard.
func (c *sizedCrawl) browse(b *testing.B, ctx context.Context) {
	host, second := c.mesh.Host(c.mesh.Hosts/2), time.NewTicker(time.Second)
	defer second.Stop()
	pages := [][]string{
		{"/", "/app.js", "/style.css", "/api/v1/history?window=10m"},
		{"/api/v1/hosts?sort=waiting&limit=50"},
		{"/api/v1/hosts?sort=finish&limit=50"},
		{"/api/v1/hosts/" + host, "/api/v1/urls?limit=50&host=" + host, "/api/v1/robots?origin=" +
			url.QueryEscape(c.web.URL(host, ""))},
		{"/metrics"},
		{"/api/v1/hosts/" + host},
		{"/api/v1/hosts?state=busy&sort=delay&limit=50"},
		{"/api/v1/hosts?sort=name&limit=50"},
		{"/api/v1/history?window=24h"},
		{"/api/v1/url?url=" + url.QueryEscape(c.web.URL(host, "/"))},
		{"/api/v1/hosts/" + bigHost, fmt.Sprintf("/api/v1/urls?limit=50&host=%s", bigHost)},
	}
	for n := 0; ; n++ {
		for _, path := range pages[n%len(pages)] {
			if _, _, err := c.get(ctx, path); err != nil {
				assert.True(b, ctx.Err() != nil, "%v", err)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-second.C:
		}
	}
}
