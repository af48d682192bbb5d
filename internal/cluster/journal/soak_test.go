//go:build soak

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestSoakCluster appends to many shards of three servers, which are restarted one after the other,
// while shards change their owners. What was acknowledged is in the log, in its order, once;
// and no former owner appends anything.
func TestSoakCluster(t *testing.T) {
	nodes := startCluster(t)
	o := testOptions()
	o.Replicas, o.Shards, o.Timeout = 3, 8, 2*time.Second
	open := func() *Streams { return openStreams(t, connect(t, nodes.urls()), o) }
	s := open()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for n := range o.Shards {
		wg.Go(func() { soakShard(t, s, n, stop) })
	}
	for i := range 12 {
		time.Sleep(3 * time.Second)
		nodes.restart(t, i%3)
	}
	close(stop)
	wg.Wait()
}

// soakShard appends to one shard until the test stops, and then compares the log with what was
// acknowledged.
func soakShard(t *testing.T, s *Streams, n int, stop <-chan struct{}) {
	var acknowledged []string
	owner := s.claim(t, n)
	var former *Shard
	for i := 0; ; i++ {
		select {
		case <-stop:
			if got := replayed(t, s.claim(t, n), storage.LogPosition{}); !slices.Equal(got, acknowledged) {
				t.Errorf("shard %d has %d records, %d were acknowledged", n, len(got), len(acknowledged))
			} else {
				t.Logf("shard %d: %d records", n, len(got))
			}
			return
		default:
		}
		number := uint64(len(acknowledged) + 1)
		if former != nil {
			if _, err := former.Append(number, []byte("former")); err == nil {
				t.Errorf("a former owner of shard %d has appended record %d", n, number)
				return
			} else if errors.Is(err, storage.ErrLost) {
				former = nil
			}
		}
		record := fmt.Sprintf("%d.%d.%s", n, i, make([]byte, rand.N(3000)))
		if rand.N(20) == 0 { // a new owner, while the answer to the old one may be on its way
			_, err := owner.Append(number, []byte(record))
			former, owner = owner, s.claim(t, n)
			got := replayed(t, owner, storage.LogPosition{})
			if err == nil {
				acknowledged = append(acknowledged, record)
			}
			if len(got) == len(acknowledged)+1 && err != nil {
				acknowledged = append(acknowledged, record) // it was taken without an answer
			}
			if !slices.Equal(got, acknowledged) {
				t.Errorf("shard %d has %d records, %d were acknowledged", n, len(got), len(acknowledged))
				return
			}
			continue
		}
		mustAppend(t, owner, number, []byte(record))
		acknowledged = append(acknowledged, record)
	}
}

// nodes are three servers that form one cluster.
type nodes struct {
	options [3]*server.Options
	servers [3]*server.Server
}

func startCluster(t *testing.T) *nodes {
	t.Helper()
	var c nodes
	var routes []*url.URL
	for i := range c.options {
		c.options[i] = &server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: freePort(t), NoLog: true, NoSigs: true,
			JetStream: true,
			StoreDir:  t.TempDir(), SyncAlways: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: freePort(t)},
		}
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", c.options[i].Cluster.Port)})
	}
	for i := range c.options {
		c.options[i].Routes = routes
		c.start(t, i)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			stopServer(s)
		}
	})
	return &c
}

func (c *nodes) start(t *testing.T, i int) {
	t.Helper()
	o := *c.options[i]
	s := must.Get(server.NewServer(&o))(t)
	s.Start()
	c.servers[i] = s
}

// restart ends a server and starts it again.
func (c *nodes) restart(t *testing.T, i int) {
	t.Helper()
	stopServer(c.servers[i])
	time.Sleep(500 * time.Millisecond)
	c.start(t, i)
}

func (c *nodes) urls() string {
	return fmt.Sprintf("nats://127.0.0.1:%d,nats://127.0.0.1:%d,nats://127.0.0.1:%d",
		c.options[0].Port, c.options[1].Port, c.options[2].Port)
}

// freePort returns a port that nobody has at the moment.
func freePort(t testing.TB) int {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return portOf(t, l.Addr().String())
}
