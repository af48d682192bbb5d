package journal

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/storage"
)

func TestMain(m *testing.M) {
	testkit.BeChild(childDir, crawlAsChild)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// patience bounds what has to come. It decides no verdict but "it never came".
const patience = testkit.Patience

// startServer starts a NATS server in this process, which keeps its streams in dir.
func startServer(t testing.TB, dir string, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: dir, SyncAlways: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
	}
	if change != nil {
		change(o)
	}
	s := must.Get(server.NewServer(o))(t)
	s.Start()
	must.True(t, s.ReadyForConnections(patience), "the server does not start")
	t.Cleanup(func() { stopServer(s) })
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc := must.Get(nats.Connect(url, ConnectOptions()...))(t)
	t.Cleanup(nc.Close)
	return nc
}

func testOptions() Options {
	return Options{Prefix: "test", Replicas: 1, Shards: 4, Timeout: 5 * time.Second}
}

func openStreams(t testing.TB, nc *nats.Conn, o Options) *Streams {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		s, err := Open(ctx, nc, o)
		if err == nil {
			return s
		}
		must.True(t, errors.Is(err, storage.ErrLogDown) && ctx.Err() == nil, "%v", err)
		time.Sleep(20 * time.Millisecond)
	}
}

// start starts one server and opens its streams.
func start(t testing.TB) *Streams {
	t.Helper()
	return openStreams(t, connect(t, startServer(t, t.TempDir(), nil).ClientURL()), testOptions())
}

// claim writes an epoch of a shard and returns its journal.
func (s *Streams) claim(t testing.TB, n int) *Shard {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, s.o.Timeout)
		ack, err := s.js.Publish(one, s.EpochSubject(n), []byte("claim"))
		done()
		if err == nil {
			run, end := context.WithCancel(context.Background())
			t.Cleanup(end)
			return s.Shard(run, n, ack.Sequence)
		}
		must.Do(t, ctx.Err(), err)
	}
}

// mustAppend appends a record, and tries again for as long as the log is down.
func mustAppend(t testing.TB, s *Shard, number uint64, record []byte) uint64 {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		sequence, err := s.Append(number, record)
		if err == nil {
			return sequence
		}
		must.True(t, errors.Is(err, storage.ErrLogDown) && !time.Now().After(deadline), "%v", err)
		time.Sleep(10 * time.Millisecond)
	}
}

// replayed returns the records of a log.
func replayed(t testing.TB, s *Shard, from storage.LogPosition) (all []string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		all = nil
		err := s.Replay(from, func(_ uint64, record []byte) error {
			all = append(all, string(record))
			return nil
		})
		if err == nil {
			return all
		}
		must.True(t, errors.Is(err, storage.ErrLogDown) && !time.Now().After(deadline), "%v", err)
	}
}

// put writes a message into a stream without any fence.
func (s *Streams) put(t testing.TB, subject string, data []byte) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ack := must.Get(s.js.Publish(ctx, subject, data))(t)
	return ack.Sequence
}

// fenced appends a message to the log of a shard as the node that has claimed it does.
func (s *Shard) fenced(t testing.TB, data []byte) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ack := must.Get(s.js.Publish(ctx, s.subject("log", s.n), data,
		jetstream.WithExpectLastSequenceForSubject(s.epoch, s.EpochSubject(s.n))))(t)
	return ack.Sequence
}

// count returns how many messages a stream has.
func count(t testing.TB, s jetstream.Stream) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	info := must.Get(s.Info(ctx))(t)
	return info.State.Msgs
}

// proxy stands between a client and a server. It can lose what the server answers.
type proxy struct {
	listener net.Listener
	to       string
	lose     atomic.Int64 // so many more answers are lost, each with its connection
	lost     atomic.Int64
	wg       sync.WaitGroup
}

func startProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &proxy{listener: l, to: to}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

// serve copies both ways until one ends. A publish of the log arms the proxy: then the next bytes of
// the server are lost, and the connection with them.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	back, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer back.Close()
	var wg sync.WaitGroup
	var armed atomic.Bool
	wg.Go(func() {
		defer back.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := client.Read(b)
			if n > 0 {
				if isAppend(b[:n]) && p.lose.Add(-1) >= 0 {
					armed.Store(true)
				}
				if _, err := back.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	b := make([]byte, 64<<10)
	for {
		n, err := back.Read(b)
		if n > 0 && armed.Load() {
			p.lost.Add(1)
			break
		}
		if n > 0 {
			if _, err := client.Write(b[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	client.Close()
	wg.Wait()
}

func isAppend(b []byte) bool {
	const publish = "HPUB test.log."
	for i := range b {
		if len(b)-i >= len(publish) && string(b[i:i+len(publish)]) == publish {
			return true
		}
	}
	return false
}

func portOf(t testing.TB, addr string) int {
	t.Helper()
	a := must.Get(net.ResolveTCPAddr("tcp", addr))(t)
	return a.Port
}
