//go:build cluster

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// deliverySecret is that of the webhook.
const deliverySecret = "open sesame"

// deliveries is a crawl by a cluster of three processes with NATS servers inside, whose results are posted to a
// receiver, and whose finished files are copied by a command. Nodes and the receiver die at random.
type deliveries struct {
	t     *testing.T
	dir   string
	web   *testweb.Web
	nodes []*demoNode

	mu       sync.Mutex
	receiver *httptest.Server
	address  string            // of the receiver, whichever it is
	dying    bool              // the receiver reads a delivery and dies before it answers
	events   map[string]string // pages by id, of all deliveries that were read
	taken    map[string]bool   // ids, of those that were answered
	repeats  int               // ids that came again
}

// TestClusterDeliveries: with nodes and the receiver killed at random, each line of output of every shard is posted,
// whatever is posted again has the id and the bytes that it had, and each finished file is copied.
func TestClusterDeliveries(t *testing.T) {
	const hosts, pages, kills = 16, 150, 5 // 45 seconds for each host, so that no kill comes after the end
	const gone = 25 * time.Second          // after 20 s the others take the shards of a node
	d := &deliveries{t: t, dir: t.TempDir(), events: make(map[string]string), taken: make(map[string]bool)}
	d.web = testweb.Serve(t, testweb.Config{Sites: deliverySites(hosts, pages)})
	d.listen("127.0.0.1:0")
	defer func() { d.receiver.Close() }()
	d.configure(hosts)
	for _, n := range d.nodes {
		d.start(n)
		defer func() { n.kill() }()
	}
	for i := range kills {
		fetched := len(d.web.Requests().Pages())
		testkit.Until(t, "more pages", func() bool { return len(d.web.Requests().Pages()) >= fetched+hosts })
		n := d.nodes[rand.IntN(len(d.nodes))]
		t.Logf("kill %d: %s, after %d requests", i, n.name, len(d.web.Requests()))
		d.die()
		n.kill()
		d.listen(d.address)
		if i == 1 {
			time.Sleep(gone) // no verdict depends on it
		}
		d.start(n)
	}
	for _, n := range d.nodes {
		d.ended(n)
	}
	d.check(hosts * pages)
}

// deliverySites are hosts with pages that link to each other, also to those of the next host.
func deliverySites(hosts, pages int) (sites []testweb.Site) {
	for h := range hosts {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\n")}
		for p := range pages {
			next := fmt.Sprintf("/%d", (p+1)%pages)
			routes[fmt.Sprintf("/%d", p)] = testweb.Page("page", next)
		}
		sites = append(sites, testweb.Site{Host: fmt.Sprintf("h%d.d%d.test", h, h), Handler: routes})
	}
	return sites
}

// configure writes the config files of the nodes.
func (d *deliveries) configure(hosts int) {
	d.t.Helper()
	const count = 3
	addresses := must.Get(freeAddresses(2 * count))(d.t)
	var seeds []string
	for h := range hosts {
		seeds = append(seeds, d.web.URL(fmt.Sprintf("h%d.d%d.test", h, h), "/0"))
	}
	for i := range count {
		n := &demoNode{name: fmt.Sprintf("node%d", i+1), ended: make(chan struct{})}
		n.dir = filepath.Join(d.dir, n.name)
		text, err := json.Marshal(map[string]any{
			"data_dir":   "./data",
			"crawl":      map[string]any{"seeds": seeds, "give_up_after": "5m", "shutdown_grace": "5s"},
			"politeness": map[string]any{"delay": "300ms", "ip_rate": 0},
			"fetch": map[string]any{"allow_private": true, "resolver": d.web.ResolverAddr(),
				"contact": "bot@one.example"},
			"output": map[string]any{
				"format": []string{"jsonl", "webhook"}, "max_age": "2s",
				"webhook":     map[string]any{"url": "http://" + d.address + "/hook", "secret": deliverySecret},
				"on_complete": fmt.Sprintf(`mkdir -p %[1]q && cp "$AMBLE_FILE" %[1]q/"$AMBLE_SHA256"`, d.dir+"/copies"),
			},
			"storage": map[string]any{"min_free": 0},
			"server":  map[string]any{"listen": "127.0.0.1:0"},
			"cluster": map[string]any{"name": "deliveries", "node": n.name, "shards": 8, "embed": map[string]any{
				"listen": addresses[i], "listen_routes": addresses[count+i], "routes": addresses[count:]}},
		})
		if err == nil {
			err = os.Mkdir(n.dir, 0o750)
		}
		if err == nil {
			err = os.WriteFile(n.config(), text, 0o600) // JSON is YAML
		}
		if err != nil {
			d.t.Fatal(err)
		}
		d.nodes = append(d.nodes, n)
	}
}

// start starts a process.
func (d *deliveries) start(n *demoNode) {
	d.t.Helper()
	log := must.Get(os.OpenFile(filepath.Join(n.dir, "log.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(d.t)
	defer log.Close()
	n.command, n.ended = exec.Command(os.Args[0], "run", "-c", n.config()), make(chan struct{})
	n.command.Args[0] = "amble" // the test binary has main under this name
	n.command.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "GORACE=atexit_sleep_ms=0")
	n.command.Stdout, n.command.Stderr = log, log
	must.Do(d.t, n.command.Start())
	command, ended := n.command, n.ended
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
}

// ended waits for the end of a process, which is that of the crawl.
func (d *deliveries) ended(n *demoNode) {
	d.t.Helper()
	testkit.Until(d.t, "the end of "+n.name, func() bool { return !n.runs() })
	if !n.command.ProcessState.Success() {
		text, _ := os.ReadFile(filepath.Join(n.dir, "log.txt"))
		d.t.Errorf("%s: %s\n%s", n.name, n.command.ProcessState, text[max(0, len(text)-4000):])
	}
}

// listen makes a receiver at an address.
func (d *deliveries) listen(address string) {
	d.t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(d.receive))
	testkit.Until(d.t, "the address of the receiver", func() bool {
		l, err := net.Listen("tcp", address)
		if err == nil {
			s.Listener.Close()
			s.Listener = l
		}
		return err == nil
	})
	d.mu.Lock()
	d.receiver, d.address, d.dying = s, s.Listener.Addr().String(), false
	d.mu.Unlock()
	s.Start()
}

// die lets the receiver die after it has read whatever comes, and before it answers.
func (d *deliveries) die() {
	d.mu.Lock()
	d.dying = true
	d.mu.Unlock()
	time.Sleep(rand.N(500 * time.Millisecond))
	d.receiver.CloseClientConnections()
	d.receiver.Close()
}

func (d *deliveries) receive(_ http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the sender was killed
	}
	if q.Header.Get("Amble-Signature") != "sha256="+webhook.Sign(deliverySecret, body) {
		d.t.Error("a delivery has another signature")
	}
	var delivery struct {
		Events []struct {
			ID, Type string
			Page     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &delivery); err != nil {
		d.t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range delivery.Events {
		if e.Type != "result" {
			continue
		}
		if before, known := d.events[e.ID]; known && before != string(e.Page) {
			d.t.Errorf("the event %s was %s, and is %s", e.ID, before, e.Page)
		} else if known {
			d.repeats++
		}
		d.events[e.ID] = string(e.Page)
	}
	if d.dying {
		panic(http.ErrAbortHandler)
	}
	for _, e := range delivery.Events {
		d.taken[e.ID] = true
	}
}

// check compares what was posted and copied with the output that was committed on all nodes.
func (d *deliveries) check(pages int) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	lines, urls := make(map[string]int), make(map[string]bool)
	files := must.Get(filepath.Glob(filepath.Join(d.dir, "*", "data", "shards", "*", "output", "pages-*")))(d.t)
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(d.t)
		if strings.HasSuffix(name, ".jsonl") {
			copied, err := filepath.Glob(filepath.Join(d.dir, "copies", fmt.Sprintf("%x", sha256.Sum256(text))))
			if err != nil || len(copied) != 1 {
				d.t.Errorf("%s was copied %d times, %v", name, len(copied), err)
			}
		} else {
			d.t.Errorf("%s has no final name", name)
		}
		for line := range bytes.Lines(text) {
			var page struct{ URL string }
			must.Do(d.t, json.Unmarshal(line, &page))
			lines[string(bytes.TrimSpace(line))]++
			urls[page.URL] = true
		}
	}
	if len(urls) != pages {
		d.t.Errorf("the output has %d pages, want %d", len(urls), pages)
	}
	posted := make(map[string]int)
	for id := range d.taken {
		posted[d.events[id]]++
	}
	for line, n := range lines {
		if posted[line] != n {
			d.t.Errorf("%d lines of output were taken %d times under different ids: %s", n, posted[line], line)
		}
	}
	for id, page := range d.events {
		if !d.taken[id] {
			d.t.Errorf("%s was posted and never taken: %s", id, page)
		} else if lines[page] == 0 {
			d.t.Errorf("%s was posted and is not in the output: %s", id, page)
		}
	}
	d.t.Logf("%d events, %d of them more than once; %d files", len(d.events), d.repeats, len(files))
}
