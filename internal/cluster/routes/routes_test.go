package routes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that has to happen. Only a failure takes as long.
const patience = testkit.Patience

var names = natsconn.Names{Cluster: "web"}

// end is a node.
type end struct {
	*Routes
	nc    *nats.Conn
	proxy *natstest.Proxy
	stop  func()
}

// connect makes a node that serves a handler, through a proxy of its own.
func connect(t *testing.T, servers *natstest.Servers, node string, h http.Handler) *end {
	t.Helper()
	proxy := natstest.NewProxy(t, servers.Addresses()[0])
	nc, _ := natstest.Connect(t, natsconn.Options{
		URLs: []string{proxy.URL()}, Node: node, Names: names, IgnoreOthers: true,
	})
	r := must.Get(Start(nc, names, node))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { r.Serve(ctx, h) })
	e := &end{Routes: r, nc: nc, proxy: proxy, stop: sync.OnceFunc(func() {
		cancel()
		serving.Wait()
		r.Close()
		nc.Close()
	})}
	t.Cleanup(e.stop)
	return e
}

func get(ctx context.Context, e *end, node, path string, body io.Reader) (*http.Response, error) {
	q := (&http.Request{Method: "POST", URL: &url.URL{Path: path}, Header: http.Header{},
		ContentLength: -1}).WithContext(ctx)
	if body == nil {
		q.ContentLength = 0
	} else {
		q.Body = io.NopCloser(body)
	}
	return e.Do(node, q)
}

// bounded is a context for what has to happen.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestBodies: bodies of many messages arrive whole, both ways and side by side, also at the node itself.
func TestBodies(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "Sum")
		sum := sha256.New()
		_, err := io.Copy(w, io.TeeReader(r.Body, sum))
		w.Header().Set("Sum", fmt.Sprintf("%x %v", sum.Sum(nil), err))
	})
	a := connect(t, servers, "a", echo)
	connect(t, servers, "b", echo)
	var wg sync.WaitGroup
	for i, size := range []int{0, 1, maxData, window*maxData + 1, 3 << 20} {
		for _, node := range []string{"a", "b"} {
			wg.Go(func() {
				sent := bytes.Repeat([]byte{byte(i), 'x', 'y'}, size/3+1)[:size]
				response, err := get(bounded(t), a, node, "/echo", bytes.NewReader(sent))
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				got, err := io.ReadAll(response.Body)
				want := fmt.Sprintf("%x <nil>", sha256.Sum256(sent))
				assert.True(t, err == nil && bytes.Equal(got, sent) && response.Trailer.Get("Sum") == want,
					"%d bytes to %s: %d bytes, %v, trailer %q", size, node, len(got), err, response.Trailer)
			})
		}
	}
	wg.Wait()
}

// TestCalls: an answer, an error in words, a shard of another node, and a node that is not there.
func TestCalls(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	h := Calls(func(_ *http.Request, body []byte) ([]byte, error) {
		switch string(body) {
		case "shard":
			return nil, fmt.Errorf("shard 7: %w", ErrNotOwner)
		case "error":
			return nil, errors.New("the disk is full")
		}
		return bytes.ToUpper(body), nil
	})
	a := connect(t, servers, "a", h)
	connect(t, servers, "b", h)
	ctx := bounded(t)
	answer, err := a.Call(ctx, "b", "/x", []byte("text"))
	assert.True(t, err == nil && string(answer) == "TEXT", "%q, %v", answer, err)
	if _, err := a.Call(ctx, "b", "/x", []byte("error")); err == nil || !strings.Contains(err.Error(), "node b") ||
		!strings.Contains(err.Error(), "the disk is full") {
		t.Error(err)
	}
	assert.Fails(a.Call(ctx, "b", "/x", []byte("shard")))(t, ErrNotOwner)
	if _, err := a.Call(ctx, "nobody", "/x", nil); !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
		t.Error(err)
	}
	assert.Fails(a.Call(ctx, "b", "/x", make([]byte, MaxCall+1)))(t, nil, "a body that is too long was taken")
}

// TestCancel: when the caller goes away the handler ends, and when the handler breaks off the caller
// does not take what it has for everything.
func TestCancel(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	ended := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
		close(ended)
	})
	a := connect(t, servers, "a", h)
	connect(t, servers, "b", h)
	response := must.Get(get(bounded(t), a, "b", "/abort", nil))(t)
	assert.Fails(io.ReadAll(response.Body))(t, nil, "was taken for the whole answer")
	response.Body.Close()
	ctx, cancel := context.WithCancel(bounded(t))
	response = must.Get(get(ctx, a, "b", "/wait", nil))(t)
	cancel()
	response.Body.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the handler goes on")
	}
}

// TestDeadNode: an answer that is under way when its node dies is broken, and what comes later fails at
// once. A slow reader breaks nothing.
func TestDeadNode(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, maxData)); err != nil {
				return
			}
		}
	})
	a := connect(t, servers, "a", h)
	b := connect(t, servers, "b", h)
	response := must.Get(get(bounded(t), a, "b", "/", nil))(t)
	defer response.Body.Close()
	must.Get(io.CopyN(io.Discard, response.Body, 4*window*maxData))(t)
	b.nc.Close() // it ends as by kill -9
	assert.Fails(io.Copy(io.Discard, response.Body))(t, nil, "the answer is taken for whole")
	assert.Fails(get(bounded(t), a, "b", "/", nil))(t, ErrUnreachable)
}

// TestLeavingNode: the message that opens a connection is sent until it is answered, as is the answer. So a node that
// leaves with it unread is missed at once.
func TestLeavingNode(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	a := connect(t, servers, "a", http.NotFoundHandler())
	b := connect(t, servers, "b", http.NotFoundHandler())
	unread := make(chan *nats.Msg, 2)
	sub := must.Get(b.nc.ChanSubscribe(b.subject("c", "*"), unread))(t)
	must.Do(t, sub.AutoUnsubscribe(cap(unread)))
	must.Do(t, b.nc.FlushWithContext(bounded(t)))
	_, err := a.Dial(bounded(t), "c")
	assert.True(t, errors.Is(err, ErrUnreachable) && strings.Contains(err.Error(), "its name"),
		"%v, want that nobody has its name", err)
	for range cap(unread) {
		assert.Equal(t, must.Get(decodeFrame((<-unread).Data))(t).kind, kindOpen, "in place of the message that opens")
	}

	id := strings.Repeat("0", idLength)
	accepted := must.Get(b.nc.SubscribeSync(b.subject("x", id)))(t)
	for range 2 {
		must.Do(t, b.nc.PublishRequest(b.subject("a", id), b.subject("x", id), (&frame{kind: kindOpen}).encode()))
		m := must.Get(accepted.NextMsgWithContext(bounded(t)))(t)
		assert.Equal(t, must.Get(decodeFrame(m.Data))(t).kind, kindAccept, "message in place of that of acceptance")
	}
}

// TestTimeLimit: a node that is cut off costs the time that the caller allows.
func TestTimeLimit(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	a := connect(t, servers, "a", http.NotFoundHandler())
	b := connect(t, servers, "b", http.NotFoundHandler())
	b.proxy.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	assert.Fails(get(ctx, a, "b", "/", nil))(t, context.DeadlineExceeded)
}

// TestHostile: whatever comes from the network, the node goes on to answer.
func TestHostile(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	a := connect(t, servers, "a", http.NotFoundHandler())
	b := connect(t, servers, "b", http.NotFoundHandler())
	id := strings.Repeat("0", idLength)
	mine, peer := b.subject("a", id), b.subject("x", id)
	send := func(subject, reply string, data []byte) {
		must.Do(t, b.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: data}), subject, reply)
	}
	for _, reply := range []string{"", "x", peer, b.subject("x", "1"), "$JS.API.STREAM.LIST"} {
		for _, subject := range []string{mine, b.subject("a", "1"), b.subject("a", strings.Repeat("0", 2*idLength))} {
			for _, f := range []frame{
				{kind: kindOpen}, {kind: kindOpen}, {kind: kindData, number: 7, data: []byte("x")},
				{kind: kindData, data: []byte("GET / HTTP/1.1\r\n\r\n")}, {kind: kindCredit, number: 3},
				{kind: kindEnd},
				{kind: kindEnd}, {kind: kindRefuse}, {kind: 99}, {kind: kindAccept},
			} {
				send(subject, reply, f.encode())
			}
			send(subject, reply, nil)
			send(subject, reply, []byte{2, 1})
		}
	}
	for i := range 2 * maxConns { // more connections than there is room for
		id := fmt.Sprintf("%032x", i+1)
		send(b.subject("a", id), b.subject("x", id), (&frame{kind: kindOpen}).encode())
	}
	over := fmt.Sprintf("%032x", 1) // more data than the window allows
	for i := range 4 * window {
		f := frame{kind: kindData, number: uint32(i), data: []byte("x")}
		send(b.subject("a", over), b.subject("x", over), f.encode())
	}
	// nobody has the name x, so the connections end, and there is room again
	for ctx := bounded(t); ; {
		response, err := get(ctx, b, "a", "/", nil)
		if err == nil {
			response.Body.Close()
			break
		}
		must.Do(t, ctx.Err(), err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.AtMost(t, a.incoming, maxConns, "connections")
}

// TestSilence: a peer that says nothing any more is given up.
func TestSilence(t *testing.T) {
	servers := natstest.Start(t, names, 1, nil)
	a := connect(t, servers, "a", http.NotFoundHandler())
	b := connect(t, servers, "b", http.NotFoundHandler())
	c := must.Get(a.Dial(bounded(t), "b"))(t)
	b.proxy.Cut()
	c.(*conn).silent.Store(maxSilence)
	assert.Fails(c.Read(make([]byte, 1)))(t, errSilent)
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add((&frame{kind: kindData, number: 1, data: []byte("x")}).encode())
	f.Add((&frame{kind: kindEnd}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := decodeFrame(b)
		assert.True(t, err != nil || bytes.Equal(g.encode(), b), "%x is %+v", b, g)
	})
}

// FuzzConn: a connection survives any sequence of messages, keeps what it holds within bounds, and never
// delivers bytes in another order.
func FuzzConn(f *testing.F) {
	f.Add([]byte{3, 0, 3, 1, 4, 1, 5, 2})
	f.Add([]byte{3, 0, 3, 0, 2, 0, 6, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := &Routes{conns: make(map[string]*conn)}
		c := newConn(r, "", "x", "")
		c.sent.Store(3)
		for i := 0; i+1 < len(script); i += 2 {
			c.take(frame{kind: kind(script[i]), number: uint32(script[i+1]), data: script[i+1 : i+2]})
		}
		assert.AtMost(t, c.sent.Load()-c.acked.Load(), window, "messages are under way")
		c.finish(errSilent)
		for i := 0; len(c.in) > 0; i++ {
			if data := <-c.in; data != nil && int(data[0]) != i {
				t.Errorf("message %d at %d", data[0], i)
			}
		}
		_ = c.Conn.Close()
	})
}
