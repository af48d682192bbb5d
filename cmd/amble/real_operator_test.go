//go:build real

package main_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/browser"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// delays are those of the operator's crawl: the one in its settings, and the one that he gives to slow.test.
const (
	givenDelay  = 200 * time.Millisecond
	raisedDelay = 1500 * time.Millisecond
)

// operated is a crawl that somebody operates by the dashboard alone, on a web of good, slow, blocked and failing hosts.
type operated struct {
	t        *testing.T
	web      *testweb.Web
	repaired *atomic.Bool    // the pages of lost.test are there
	wanted   map[string]bool // URLs of pages that can be had, once the web is repaired and late.test is a seed

	binary, dir, address string
	process              *process
	kills                int
}

func startOperated(t *testing.T) *operated {
	forgetSettings(t)
	o := &operated{t: t, repaired: new(atomic.Bool), wanted: make(map[string]bool), dir: t.TempDir(), binary: build(t)}
	o.web = testweb.Serve(t, testweb.Config{Sites: o.sites()})
	var seeds []string
	for _, host := range o.web.Sites() {
		if host != "late.test" {
			seeds = append(seeds, strconv.Quote(o.web.URL(host, "/")))
		}
	}
	settings := fmt.Sprintf(`
data_dir: ./data
crawl: {exit_when_done: false, seeds: [%s]}
politeness: {delay: %s, ip_rate: 0}
fetch: {allow_private: true, resolver: %s}
output: {format: [jsonl]}
`, strings.Join(seeds, ", "), givenDelay, o.web.ResolverAddr())
	must.Do(t, os.WriteFile(filepath.Join(o.dir, "config.yaml"), []byte(settings), 0o600))
	o.address = "127.0.0.1:0"
	o.run()
	o.address = addressOf(t, o.dir, o.process)
	return o
}

// run starts the crawl, or goes on with it.
func (o *operated) run() {
	o.process = start(o.t, o.binary, "run", "-c", filepath.Join(o.dir, "config.yaml"), "--set",
		"server.listen="+o.address)
}

// kill kills the process, and starts another one when the tab has seen it. The tab follows by itself.
func (o *operated) kill(b *browser.Tab) {
	o.t.Helper()
	o.kills++
	o.process.signal(syscall.SIGKILL)
	o.process.wait(time.Minute)
	b.Wait(`document.querySelector("#state").textContent === "no contact" && ` +
		`document.querySelector("#notice").innerText.includes("these figures are of then")`)
	o.run()
	b.Wait(`document.querySelector("#state").textContent === "running" && document.querySelector("#notice").hidden`)
}

// cutOff sends a change of many seeds, and kills the process before anybody has read the answer. The change is whole
// then, or not there, and giving it again makes it whole.
func (o *operated) cutOff(b *browser.Tab, tag string, after time.Duration) {
	o.t.Helper()
	var list strings.Builder
	for i := range cutSeeds {
		fmt.Fprintln(&list, o.web.URL("good-2.test", fmt.Sprintf("/page-%d", i))+" tags="+tag)
	}
	conn := must.Get(net.Dial("tcp", o.address))(o.t)
	q := must.Get(http.NewRequest(http.MethodPost, "http://"+o.address+"/api/v1/seeds",
		strings.NewReader(list.String())))(o.t)
	q.Header.Set("Content-Type", "text/plain")
	must.Do(o.t, q.Write(conn))
	time.Sleep(after)
	o.kill(b)
	_ = conn.Close() // the process at its other end is gone
	tagged := func() (n int) {
		for _, line := range bytes.Split(o.get("/api/v1/seeds"), []byte("\n")) {
			if bytes.Contains(line, []byte(`"tags":["`+tag+`"]`)) {
				n++
			}
		}
		return n
	}
	n := tagged()
	if n != 0 && n != cutSeeds {
		o.t.Errorf("%d of %d seeds are there after a kill in the middle", n, cutSeeds)
	}
	resp := must.Get(http.Post("http://"+o.address+"/api/v1/seeds", "text/plain",
		strings.NewReader(list.String())))(o.t)
	must.Do(o.t, resp.Body.Close())
	if again := tagged(); resp.StatusCode != http.StatusOK || again != cutSeeds {
		o.t.Errorf("given again: %s, and %d of %d seeds are there", resp.Status, again, cutSeeds)
	}
	o.t.Logf("killed %v after a change was sent: %d of its %d seeds were there", after, n, cutSeeds)
}

// cutSeeds is how many seeds cutOff adds.
const cutSeeds = 200

// get returns what the API answers.
func (o *operated) get(path string) []byte {
	o.t.Helper()
	resp := must.Get(http.Get("http://" + o.address + path))(o.t)
	defer resp.Body.Close()
	return must.Get(io.ReadAll(resp.Body))(o.t)
}

// linkedPages returns how many pages the first page of each host links to.
func linkedPages() map[string]int {
	return map[string]int{"good-1.test": 150, "good-2.test": 200, "slow.test": 20, "lost.test": 12, "late.test": 15,
		"wall.test": 30, "failing.test": 10}
}

// sites are those of the web.
func (o *operated) sites() (sites []testweb.Site) {
	for host, pages := range linkedPages() {
		routes := testweb.Routes{}
		var links []string
		for i := range pages {
			path := fmt.Sprintf("/page-%d", i)
			links = append(links, path)
			routes[path] = o.page(host)
		}
		routes["/"] = testweb.Page("the first page", links...)
		sites = append(sites, testweb.Site{Host: host, Handler: routes})
	}
	return append(sites,
		testweb.Site{Host: "closed.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /\n"), "/": testweb.Page("not for robots")}},
		testweb.Site{Host: "broken.test", Handler: testweb.Routes{"/robots.txt": testweb.Status(500),
			"/": testweb.Page("its robots.txt cannot be read")}})
}

// page is what the pages of a host are, besides the first.
func (o *operated) page(host string) http.Handler {
	page := testweb.Page("a page")
	switch host {
	case "wall.test":
		return testweb.Status(http.StatusForbidden)
	case "failing.test":
		return testweb.Status(http.StatusInternalServerError)
	case "slow.test":
		return testweb.Slow(500*time.Millisecond, page)
	case "lost.test":
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if o.repaired.Load() {
				page.ServeHTTP(w, r)
				return
			}
			http.NotFound(w, r)
		})
	}
	return page
}

// names are the hosts of the list that the tab shows.
func names(b *browser.Tab) string {
	return b.Text(`[...document.querySelectorAll("tbody a[href^='#/hosts/']")].map((a) => a.textContent)` +
		`.sort().join(" ")`)
}

// TestRealOperator is an hour of an operator who has a browser and no terminal: he makes sense of the crawl, names
// every blocked host, adds a site, raises a delay, retries what failed, exports CSV and ends it. The process is killed
// after each step, and in the middle of a change. What the web has seen and what was written say whether anything was
// lost.
func TestRealOperator(t *testing.T) {
	b := browser.Open(t)
	o := startOperated(t)
	show := func(page, ready string) {
		t.Helper()
		b.Show("http://"+o.address+"/#/"+page, 1400, false, ready)
	}
	show("", `document.querySelector("#state").textContent === "running"`)
	o.kill(b)

	// what needs attention, without asking
	const said = `[...document.querySelectorAll(".attention li")].map((x) => x.innerText.replace(/\s+/g, " "))` +
		`.join("; ")`
	for _, part := range []string{"1 host behind a wall", "2 hosts held", "1 host failing", "12 URLs given up"} {
		b.Wait(said + `.includes("` + part + `")`)
	}
	for state, want := range map[string]string{"walled": "wall.test", "held": "broken.test closed.test",
		"failing": "failing.test"} {
		show("", `document.querySelector(".attention a[href*='state=`+state+`']")`)
		b.Text(`document.querySelector(".attention a[href*='state=` + state + `']").click() ?? ""`)
		b.Wait(`document.querySelector("select[name=state]")?.value === "` + state + `"`)
		assert.Equal(t, names(b), want, "hosts that are", state)
	}
	o.kill(b)

	show("seeds", `document.querySelectorAll("tbody tr").length === `+strconv.Itoa(len(o.web.Sites())-1))
	b.Press("Add seeds", "list", o.web.URL("late.test", "/")+" tags=late")
	o.kill(b)

	show("find/slow", `document.querySelector("h1").textContent === "Found for “slow”"`)
	b.Text(`document.querySelector("tbody a[href='#/hosts/slow.test']").click() ?? ""`)
	b.Wait(`document.querySelector("h1").textContent === "slow.test"`)
	b.Press("Set delay", "seconds", strconv.FormatFloat(raisedDelay.Seconds(), 'f', -1, 64))
	raised := time.Now()
	o.kill(b)

	show("urls/state=failed", `document.querySelector("caption")?.textContent === "12 of 12"`)
	o.checkFailed(b.Download("a.button"))
	o.repaired.Store(true)
	b.Press("Retry these")
	b.Wait(`/^12 of [0-9,]+ inspected URLs were put back$/.test(document.querySelector("#notice").innerText)`)
	o.kill(b)

	o.await()
	o.kill(b)
	show("urls/state=fetched", `document.querySelector("a.button")`)
	o.checkCSV(b.Download("a.button"))
	o.kill(b)
	for i, after := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond} {
		o.cutOff(b, fmt.Sprintf("cut-%d", i), after)
	}

	show("", `document.querySelector("#state").textContent === "running"`)
	b.Press("Stop")
	b.Wait(`document.querySelector("#notice").innerText.startsWith("The crawl has ended")`)
	if err := o.process.wait(time.Minute); err != nil {
		t.Errorf("the end: %v\n%s", err, tail(o.process.output.String()))
	}
	o.judge(raised)
}

// await waits until the web has served all that can be had, and learns what that is.
func (o *operated) await() {
	o.t.Helper()
	for host, pages := range linkedPages() {
		o.wanted[o.web.URL(host, "/")] = true
		for i := 0; i < pages && host != "wall.test" && host != "failing.test"; i++ {
			o.wanted[o.web.URL(host, fmt.Sprintf("/page-%d", i))] = true
		}
	}
	for limit := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		missing := maps.Clone(o.wanted)
		for _, r := range o.web.Requests() {
			if r.Status == http.StatusOK && r.Done {
				delete(missing, o.web.URL(r.Host, r.Path))
			}
		}
		if len(missing) == 0 {
			return
		}
		if time.Now().After(limit) {
			o.t.Fatalf("%d pages were not fetched, such as %v\n%s", len(missing), slices.Collect(maps.Keys(missing))[0],
				tail(o.process.output.String()))
		}
	}
}

// rows reads CSV: the cells of each row by their columns.
func (o *operated) rows(content []byte) (all []map[string]string) {
	o.t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil || len(rows) == 0 {
		o.t.Fatalf("the CSV: %v\n%.500s", err, content)
	}
	for _, row := range rows[1:] {
		cells := make(map[string]string)
		for i, cell := range row {
			cells[rows[0][i]] = cell
		}
		all = append(all, cells)
	}
	return all
}

// checkFailed holds the exported list of what failed against what the web refused.
func (o *operated) checkFailed(content []byte) {
	o.t.Helper()
	missing := make(map[string]bool)
	for i := range linkedPages()["lost.test"] {
		missing[o.web.URL("lost.test", fmt.Sprintf("/page-%d", i))] = true
	}
	for _, row := range o.rows(content) {
		if !missing[row["url"]] || row["state"] != "failed" || row["status"] != "404" ||
			row["via"] != o.web.URL("lost.test", "/") {
			o.t.Errorf("the CSV of what failed has %v", row)
		}
		delete(missing, row["url"])
	}
	if len(missing) > 0 {
		o.t.Errorf("the CSV of what failed lacks %v", slices.Collect(maps.Keys(missing)))
	}
}

// checkCSV holds the exported file against what can be had.
func (o *operated) checkCSV(content []byte) {
	o.t.Helper()
	missing := maps.Clone(o.wanted)
	for _, row := range o.rows(content) {
		if !missing[row["url"]] {
			o.t.Errorf("the CSV has %s, which cannot be had or is there twice", row["url"])
		}
		delete(missing, row["url"])
	}
	if len(missing) > 0 {
		o.t.Errorf("the CSV lacks %v", slices.Collect(maps.Keys(missing)))
	}
}

// judge holds the record of the web and the output against what was asked for.
func (o *operated) judge(raised time.Time) {
	requests := o.web.Requests()
	served, repeats := make(map[string]int), 0
	for _, r := range requests.Pages() {
		if r.Status == http.StatusOK {
			served[o.web.URL(r.Host, r.Path)]++
		}
	}
	lines := o.lines()
	for page := range o.wanted {
		if repeats += served[page] - 1; lines[page] != 1 {
			o.t.Errorf("%s has %d lines in the output, and was served %d times", page, lines[page], served[page])
		}
	}
	if most := o.kills * len(o.web.Sites()); repeats > most {
		o.t.Errorf("%d pages were fetched again after %d kills: more than were in flight", repeats, o.kills)
	}
	for _, host := range o.web.Sites() {
		if short := requests.Host(host).ShortGaps(givenDelay); len(short) > 0 {
			o.t.Errorf("%s: gaps under its delay: %v", host, short)
		}
	}
	later := requests.Host("slow.test").Filter(func(r testweb.Request) bool { return r.Start.After(raised) })
	if short := later.ShortGaps(raisedDelay); len(later) < 2 || len(short) > 0 {
		o.t.Errorf("slow.test had %d requests after its delay was raised, with short gaps: %v", len(later), short)
	}
	if closed := requests.Host("closed.test").Pages(); len(closed) > 0 {
		o.t.Errorf("closed.test disallows everything, and has seen %v", closed)
	}
	o.t.Logf("%d kills, %d pages, %d of them fetched again", o.kills, len(o.wanted), repeats)
}

// lines counts the lines of the output for each page that was fetched with status 200.
func (o *operated) lines() map[string]int {
	o.t.Helper()
	files, err := filepath.Glob(filepath.Join(o.dir, "data", "output", "pages-*"))
	if err != nil || len(files) == 0 {
		o.t.Fatalf("no files in the output directory (%v)", err)
	}
	lines := make(map[string]int)
	for _, file := range files {
		content := must.Get(os.ReadFile(file))(o.t)
		for text := range bytes.Lines(content) {
			var l struct {
				line
				Tags []string
			}
			if err := json.Unmarshal(text, &l); err != nil {
				o.t.Fatalf("%s: not a line of JSON: %q (%v)", file, text, err)
			}
			isLate := strings.HasPrefix(l.URL, o.web.URL("late.test", "/"))
			if isLate != slices.Contains(l.Tags, "late") {
				o.t.Errorf("%s has the tags %v", l.URL, l.Tags)
			}
			if l.Status == http.StatusOK {
				lines[l.URL]++
			}
		}
	}
	return lines
}
