package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// The environment of a child: the servers of the cluster, and the web server that it crawls.
const (
	childURL = "AMBLE_TEST_CLUSTER"
	childWeb = "AMBLE_TEST_WEB"
)

// runChild is a node in a process of its own. It crawls a server until it is killed.
func runChild() {
	err := crawlAsChild(os.Getenv(childURL), os.Getenv(childWeb))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func crawlAsChild(url, web string) error {
	nc, js, err := natsconn.Connect(natsconn.Options{URLs: []string{url}, Node: "child", Names: names})
	if err != nil {
		return err
	}
	o := fetch.DefaultOptions()
	o.UserAgent, o.AllowPrivate, o.MaxIdleConns = "amble-test/1 (+https://amble.test/)", true, 0
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		time.Sleep(50 * time.Millisecond) // so that it is usually stopped between connecting and writing
		return c, err
	}
	client, err := fetch.New(o, time.Now)
	if err != nil {
		return err
	}
	e := &crawlers{client: client, web: web, stop: make(map[*Holding]context.CancelFunc)}
	n, err := Join(context.Background(), nc, js, Options{Cluster: shortOptions("child"), Names: names, Replicas: 1,
		Uptime: uptime, Engines: e})
	if err != nil {
		return err
	}
	return n.Run(context.Background())
}

// crawlers are engines that make requests to a server of this machine, with the epoch in the path.
type crawlers struct {
	client *fetch.Client
	web    string
	mu     sync.Mutex
	stop   map[*Holding]context.CancelFunc
}

func (e *crawlers) Open(h *Holding) {
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.Lock()
	e.stop[h] = cancel
	e.mu.Unlock()
	go func() {
		for ctx.Err() == nil {
			e.fetch(h)
			pause(ctx, 50*time.Millisecond)
		}
		h.Ended(nil)
	}()
}

func (e *crawlers) fetch(h *Holding) {
	r, err := h.Begin(context.Background())
	if err != nil {
		return
	}
	defer r.End()
	url, err := weburl.Parse(fmt.Sprintf("%s/%d/%d", e.web, h.Shard(), h.Epoch()))
	if err != nil {
		panic(err)
	}
	resp, err := e.client.Do(r.Context(),
		fetch.Request{URL: url, Address: netip.MustParseAddr("127.0.0.1"), Permit: r.Check})
	if err == nil {
		_ = resp.Close()
	}
}

func (e *crawlers) Close(h *Holding, _ bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop[h]()
}

func (e *crawlers) Granted(string) {}
