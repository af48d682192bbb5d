//go:build real

package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// workers is how many requests amble may have in flight.
const workers = 32

// build builds the program that is tested.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "amble")
	output, err := command(t, 5*time.Minute, "go", "build", "-o", binary, ".")
	must.True(t, err == nil, "%v\n%s", err, output)
	return binary
}

// crawl is a data directory of amble and the settings that belong to it.
type crawl struct {
	binary, dir string
	server      *nginx
	runs        int // how often it was started
}

// agentOfRun begins the User-Agent header; the number of the run follows, so that the log tells
// which process made a request.
const agentOfRun = "amble-real/"

// newCrawl makes an empty data directory and the settings for a crawl of everything the server has.
// maxPages 0 is no limit.
func newCrawl(t *testing.T, binary string, server *nginx, politeness string, maxPages int) *crawl {
	t.Helper()
	c := &crawl{binary: binary, dir: t.TempDir(), server: server}
	settings := fmt.Sprintf(`
data_dir: ./data
crawl:
  seeds: [%s]
  workers: %d
  exit_when_done: true
  max_pages: %d
politeness: {%s}
fetch:
  allow_private: true
output:
  format: [jsonl]
server:
  listen: ""
`, strings.Join(server.seeds, ", "), workers, maxPages, politeness)
	must.Do(t, os.WriteFile(filepath.Join(c.dir, "config.yaml"), []byte(settings), 0o600))
	return c
}

// start begins the crawl, or goes on with it.
func (c *crawl) start(t *testing.T) *process {
	t.Helper()
	c.runs++
	return start(t, c.binary, "run", "-c", filepath.Join(c.dir, "config.yaml"), "--set", "fetch.user_agent="+
		agentOfRun+strconv.Itoa(c.runs))
}

// finish waits for the crawl to be done.
func (c *crawl) finish(t *testing.T, p *process) {
	t.Helper()
	if err := p.wait(crawlTimeout); err != nil {
		t.Fatalf("amble run: %v\n%s", err, tail(p.output.String()))
	}
}

// line is what the test reads of a line of the output.
type line struct {
	URL      string
	Status   int
	Digest   string
	Attempts int
	Outlinks int
}

// lines reads the output: each URL that was fetched, once.
func (c *crawl) lines(t *testing.T) map[page]line {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "data", "output", "pages-*"))
	must.True(t, err == nil && len(files) != 0, "no files in the output directory (%v)", err)
	lines := make(map[page]line)
	for _, file := range files {
		content := must.Get(os.ReadFile(file))(t)
		for text := range bytes.Lines(content) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil || !bytes.HasSuffix(text, []byte("\n")) {
				t.Fatalf("%s: not a line of JSON: %q (%v)", file, text, err)
			}
			if l.Attempts == 0 {
				continue // never fetched
			}
			p := c.page(t, l.URL)
			_, twice := lines[p]
			assert.True(t, !twice, "%s: a second line for %s", file, p)
			lines[p] = l
		}
	}
	return lines
}

// page is the page that a URL names.
func (c *crawl) page(t *testing.T, text string) page {
	t.Helper()
	u := must.Get(url.Parse(text))(t)
	return page{c.server.hosts[u.Host], u.RequestURI()}
}

// committed reads from the database which pages are done. Nobody else may have it open.
func (c *crawl) committed(t *testing.T) map[page]bool {
	t.Helper()
	store, err := storage.Open(filepath.Join(c.dir, "data"), storage.Options{})
	must.Do(t, err)
	defer store.Close()
	done := make(map[page]bool)
	err = store.Hosts(func(h *storage.Host) error {
		for from := uint32(0); from < h.Tail; {
			from, err = store.URLs(h.ID, from, 1000, func(head storage.Head) {
				if head.Last.State == storage.Fetched {
					done[c.page(t, hostURL(h, head).String())] = true
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	must.Do(t, err)
	return done
}

// hostURL is the URL of a row of a host.
func hostURL(h *storage.Host, head storage.Head) weburl.URL {
	return h.Queues[head.Origin].Origin.URL(head.RequestURI)
}

// killing is a crawl that is killed over and over until it is done.
type killing struct {
	name  string
	pace  int           // of the server: requests a second for each site; 0: no limit
	every time.Duration // at the latest this long after each start it is killed...
	pages int           // ...or when it has made so many requests
	least int           // kills there must be, so that the test means something
	most  int           // pages fetched twice for each kill, on average; 0: as many as had ended and were not committed
}

// maxKills bounds the kills of one crawl; after that it may finish.
const maxKills = 60

// killings are the two paces: a slow server, so that kills meet requests in flight and little else
// that is not committed, and a fast one, so that they meet commits. What ends while a commit is
// under way waits for the next one, and that can be more than there are workers when the server is
// fast or the disk is slow.
var killings = []killing{
	{name: "KillEverySeconds", pace: 30, every: 3 * time.Second, pages: 1 << 30, least: 5, most: workers},
	{name: "KillEveryHundredPages", every: time.Minute, pages: 100, least: 8},
}

// kill is the end of a run, and what was committed by then.
type kill struct{ committed map[page]bool }

// test crawls, killed over and over, and holds the result against that of the crawl that was not
// killed.
func (k killing) test(t *testing.T, sites []site, binary string, want map[page]int) {
	if want == nil {
		t.Skip("TestReal/Compare was not run, so nobody knows what to fetch: run it too")
	}
	server := serve(t, sites, k.pace)
	c := newCrawl(t, binary, server, fast, 0)
	begun := time.Now()
	kills := k.crawl(t, c)
	took := time.Since(begun)
	log := server.stop(t)
	fetched := pagesOf(log)
	sameSet(t, "the killed crawl", fetched, "the other crawl", want)
	sameSet(t, "the output", c.lines(t), "nginx's log", fetched)
	assert.True(t, len(kills) >= k.least, "%d kills, want %d at least: the crawl is too fast for this test",
		len(kills), k.least)
	repeats := checkRepeats(t, log, kills)
	figures(t, "killed", len(fetched), len(log), took)
	t.Logf("%d kills, %d pages fetched twice, %v by kill", len(kills), sum(repeats), repeats)
	if k.most > 0 && sum(repeats) > k.most*len(kills) {
		t.Errorf("%d pages were fetched twice after %d kills, want %d for each at most", sum(repeats), len(kills),
			k.most)
	}
}

// crawl runs amble until it is done and kills it again and again before that.
func (k killing) crawl(t *testing.T, c *crawl) []kill {
	t.Helper()
	var kills []kill
	for {
		p := c.start(t)
		if len(kills) == maxKills || !k.due(t, c, p) {
			c.finish(t, p)
			return kills
		}
		p.signal(syscall.SIGKILL)
		if p.wait(10*time.Second) == nil {
			return kills // it was done just before
		}
		kills = append(kills, kill{committed: c.committed(t)})
	}
}

// due waits for the moment of the next kill. It reports false if the crawl was done before.
func (k killing) due(t *testing.T, c *crawl, p *process) bool {
	t.Helper()
	latest, enough := time.Now().Add(k.every), c.server.served()+k.pages
	for p.running() {
		if time.Now().After(latest) || c.server.served() >= enough {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// checkRepeats checks that a page is fetched again only by a later run, and only where the kill
// before that run found it not committed. It returns how many pages each kill made to be fetched
// again.
func checkRepeats(t *testing.T, log []request, kills []kill) []int {
	t.Helper()
	repeats := make([]int, len(kills))
	last := make(map[page]int) // the run that fetched it last
	slices.SortStableFunc(log, func(a, b request) int { return cmp.Compare(a.run, b.run) })
	for _, r := range log {
		before, again := last[r.page]
		last[r.page] = r.run
		switch {
		case !again || r.page.isRobots():
		case before == r.run:
			t.Errorf("%s was fetched twice in run %d", r.page, r.run)
		case kills[r.run-2].committed[r.page]: // run 1 was ended by kills[0]
			t.Errorf("%s was fetched in run %d, committed, and fetched again in run %d", r.page, before, r.run)
		default:
			repeats[before-1]++
		}
	}
	return repeats
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}
