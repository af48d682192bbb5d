//go:build real

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// workers is how many requests amble may have in flight.
const workers = 32

// build builds the program that is tested.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "amble")
	if output, err := command(t, 5*time.Minute, "go", "build", "-o", binary, "."); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}

// crawl is a data directory of amble and the settings that belong to it.
type crawl struct {
	binary, dir string
	server      *nginx
	runs        int // how often it was started
}

// agentOfRun begins the User-Agent header; the number of the run follows, so that the log tells which process asked.
const agentOfRun = "amble-real/"

// newCrawl makes an empty data directory and the settings for a crawl of everything the server has. maxPages 0 is no limit.
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
	if err := os.WriteFile(filepath.Join(c.dir, "config.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// start begins the crawl, or goes on with it.
func (c *crawl) start(t *testing.T) *process {
	t.Helper()
	c.runs++
	return start(t, c.binary, "run", "-c", filepath.Join(c.dir, "config.yaml"), "--set", "fetch.user_agent="+agentOfRun+strconv.Itoa(c.runs))
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

// lines reads the output: each URL that was asked for, once.
func (c *crawl) lines(t *testing.T) map[page]line {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "data", "output", "pages-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in the output directory (%v)", err)
	}
	lines := make(map[page]line)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range bytes.Lines(content) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil || !bytes.HasSuffix(text, []byte("\n")) {
				t.Fatalf("%s: not a line of JSON: %q (%v)", file, text, err)
			}
			if l.Attempts == 0 {
				continue // never asked for
			}
			p := c.page(t, l.URL)
			if _, twice := lines[p]; twice {
				t.Errorf("%s: a second line for %s", file, p)
			}
			lines[p] = l
		}
	}
	return lines
}

// page is the page that a URL names.
func (c *crawl) page(t *testing.T, text string) page {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return page{c.server.hosts[u.Host], u.RequestURI()}
}

// committed reads from the database which pages are done. Nobody else may have it open.
func (c *crawl) committed(t *testing.T) map[page]bool {
	t.Helper()
	store, err := storage.Open(filepath.Join(c.dir, "data"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// hostURL is the URL of a row of a host.
func hostURL(h *storage.Host, head storage.Head) weburl.URL {
	return h.Queues[head.Origin].Origin.URL(head.RequestURI)
}
