package service

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier/health"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"google.golang.org/protobuf/proto"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// smallLimits are limits that a test reaches.
func smallLimits() Limits {
	l := DefaultLimits()
	l.Item, l.Batch, l.Request = 4<<10, 64<<10, 1<<10
	return l
}

// Messages beyond the limit end their RPC, compressed ones too, and the service goes on.
func TestHugeMessages(t *testing.T) {
	s := start(t, Options{Limits: smallLimits()}, newFakeCrawls())
	c := dial(t, s.Address())
	huge := info("http://one.test/" + strings.Repeat("x", 8<<10))
	for name, m := range map[string]any{
		"PutURLs": discovered(huge), "GetURLs": &urlfrontierpb.GetParams{Key: huge.GetUrl()},
		"PutDiscovered": &urlfrontierpb.DiscoveredBatch{Items: []*urlfrontierpb.URLInfo{huge, huge, huge,
			huge, huge, huge,
			huge, huge, huge}},
	} {
		stream := c.open(t.Context(), name)
		must.Do(t, stream.SendMsg(m))
		assert.Equal(t, status.Code(stream.RecvMsg(new(urlfrontierpb.Empty))), codes.ResourceExhausted, name)
	}
	if _, err := try[pbStats](c, "GetStats",
		&pbQueue{Key: huge.GetUrl()}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("GetStats: %v", err)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	if text := rawCall(t, s, "PutURLs", 1, bomb.Bytes()); !strings.Contains(text, "8") { // RESOURCE_EXHAUSTED
		t.Errorf("a gzip bomb: %q", text)
	}
	_ = do[pbStats](c, "GetStats", &pbQueue{})
}

// rawCall sends one gRPC message with a flag byte, and returns the status.
func rawCall(t *testing.T, s *Service, rpc string, flag byte, body []byte) string {
	t.Helper()
	status, _ := post(t, s, "/urlfrontier.URLFrontier/"+rpc, flag, body)
	return status
}

// callRaw sends one gRPC message, and returns what comes.
func callRaw(t *testing.T, s *Service, path string, body []byte) string {
	t.Helper()
	_, text := post(t, s, path, 0, body)
	return text
}

func post(t *testing.T, s *Service, path string, flag byte, body []byte) (status, text string) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	frame := append([]byte{flag}, binary.BigEndian.AppendUint32(nil, uint32(len(body)))...)
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address()+path,
		bytes.NewReader(append(frame, body...))))(t)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	if flag == 1 {
		r.Header.Set("Grpc-Encoding", "gzip")
	}
	response := must.Get(transport.RoundTrip(r))(t)
	defer response.Body.Close()
	all, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.Header.Get("Grpc-Status") + response.Trailer.Get("Grpc-Status"), string(all)
}

// What is no message, no RPC or no HTTP is refused, and the service goes on.
func TestGarbage(t *testing.T) {
	s := start(t, Options{}, newFakeCrawls())
	for _, body := range [][]byte{{0xff, 0xff, 0xff}, {}, bytes.Repeat([]byte{0x0a}, 1000),
		[]byte("http://one.test/")} {
		for _, rpc := range []string{"PutURLs", "PutDiscovered", "GetURLs", "GetStats", "Nothing"} {
			for _, flag := range []byte{0, 1, 2, 0x80} {
				_ = rawCall(t, s, rpc, flag, body)
			}
		}
	}
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x00\x01\x02",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 4096),
		"POST /urlfrontier.URLFrontier/GetStats HTTP/1.1\r\n" +
			"Host: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"key\":[}"} {
		conn := must.Get(net.Dial("tcp", s.Address()))(t)
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	c := dial(t, s.Address())
	for _, key := range []string{"a/b", "@", "http://x", "\x00", strings.Repeat("x", 255), "[::1", " "} {
		assert.Equal(t, do[pbStats](c, "GetStats", &pbQueue{Key: key}).GetSize(), 0, key)
		assert.Equal(t, do[pbLong](c, "DeleteQueue", &pbQueue{Key: key}).GetValue(), 0, key)
		assert.Equal(t, len(c.get(&urlfrontierpb.GetParams{Key: key})), 0, key)
	}
}

// An empty key deletes no queue.
func TestDeleteQueueWithoutKey(t *testing.T) {
	s := start(t, Options{}, newFakeCrawls())
	c := dial(t, s.Address())
	c.put(discovered(info("http://one.test/")))
	assert.Equal(t, do[pbLong](c, "DeleteQueue", &pbQueue{}).GetValue(), 0, "deleted")
	assert.Equal(t, do[pbLong](c, "CountURLs", &urlfrontierpb.CountUrlParams{}).GetValue(), 1, "left")
}

// Items that no crawl takes are skipped, and what cannot be taken at all fails, so that no client takes it for
// success: each for itself, with a line in the log and a count.
func TestSkippedItems(t *testing.T) {
	var lines lockedBuffer
	m := NewMetrics()
	s := start(t, Options{Metrics: m, Log: slog.New(slog.NewTextHandler(&lines, nil))}, newFakeCrawls())
	c := dial(t, s.Address())
	long := info("http://one.test/metadata")
	long.Metadata = map[string]*pbList{"k": {Values: []string{strings.Repeat("v", 17<<10)}}}
	crawlID := info("http://one.test/crawl")
	crawlID.CrawlID = strings.Repeat("c", 200)
	skipped := map[string]*urlfrontierpb.URLItem{
		"bad_url":       discovered(info("one.test")),
		"long_key":      discovered(keyed("http://one.test/", strings.Repeat("x", 256))),
		"long_metadata": discovered(long), "bad_crawl_id": discovered(crawlID),
		"outside":   discovered(info("http://one.test/outside")),
		"opted_out": discovered(info("http://one.test/optedout")),
	}
	items := []*urlfrontierpb.URLItem{known(info("http://one.test/first"), 1)}
	for name, item := range skipped {
		item.ID = name
		items = append(items, item)
	}
	items = append(items, &urlfrontierpb.URLItem{ID: "nothing"}, discovered(info("http://one.test/last")))
	acks := c.put(items...)
	must.True(t, len(acks) == len(items), "%d of %d are acknowledged", len(acks), len(items))
	for i, ack := range acks {
		want := urlfrontierpb.AckMessage_SKIPPED
		switch id := items[i].GetID(); {
		case i == 0 || i == len(items)-1:
			want = urlfrontierpb.AckMessage_OK
		case id == "long_key" || id == "long_metadata" || id == "bad_crawl_id":
			want = urlfrontierpb.AckMessage_FAIL
		}
		if id := items[i].GetID(); ack.GetStatus() != want || id != "" && ack.GetID() != id {
			t.Errorf("%v, want %v for %s", ack, want, id)
		}
	}
	counts := gathered(t, m)
	for name := range skipped {
		want := 1.0
		if name == "bad_url" {
			want = 2
		}
		assert.Equal(t, counts[`amble_urlfrontier_items_total PutURLs `+name], want, name, "is counted times")
	}
	if text := lines.String(); !strings.Contains(text, "reason=") || strings.Count(text, "\n") > skipBurst {
		t.Errorf("the log says %s", text)
	}
}

// The keys that are those of the host of a URL, and those that stand for hosts.
func TestKeys(t *testing.T) {
	s := start(t, Options{}, newFakeCrawls())
	c := dial(t, s.Address())
	for _, x := range []struct {
		url, key string
		isHost   bool
	}{
		{"http://one.test/", "", true}, {"http://one.test/", "one.test", true}, {"http://One.test/", "One.test", true},
		{"http://One.test/", "one.test", true}, {"http://one.test:8080/", "one.test", true},
		{"http://one.test:8080/", "one.test:8080", true}, {"https://one.test/", "one.test:443", true},
		{"http://one.test/", "one.test:8080", false}, {"http://one.test:80?q", "one.test", true},
		{"http://bücher.test/", "bücher.test", true}, {"http://bücher.test/", "xn--bcher-kva.test", true},
		{"http://[::1]/", "[::1]", true}, {"http://[::1]/", "[", true},
		{"http://user@one.test/", "user@one.test", true},
		{"http://www.one.test/", "one.test", false}, {"http://one.test/", "_DEFAULT_", false},
		{"http://one.test/", "192.0.2.1", false}, {"http://one.test/", strings.Repeat("x", 255), false},
		{"http://one.test/", "one.test/", false}, {"http://one.test/", "x@one.test", false},
	} {
		x.url += number("#", len(x.key)) // the fragment is no part of it
		ack := c.put(known(keyed(x.url, x.key), 1))[0]
		item := do[pbItem](c, "GetURLStatus", &pbStatus{Url: x.url, Key: x.key})
		assert.True(t, ack.GetStatus() == urlfrontierpb.AckMessage_OK && ack.GetID() == x.url, "%s in the queue %q: %v",
			x.url, x.key, ack)
		want := x.key
		if u, err := weburl.Parse(x.url); err == nil && x.isHost {
			want = u.Host()
		}
		assert.Equal(t, item.GetKnown().GetInfo().GetKey(), want, x.url, "is in the queue put with", x.key)
	}
}

// A client that sends without end and reads nothing gets no more than the bound into memory.
func TestEndlessStream(t *testing.T) {
	for _, rpc := range []string{"PutURLs", "PutDiscovered"} {
		t.Run(rpc, func(t *testing.T) {
			f := newFakeCrawls()
			gate := make(chan struct{})
			f.crawls["DEFAULT"] = gated(t, f, gate)
			l := DefaultLimits()
			l.Items, l.Batches = 100, 4
			s := start(t, Options{Limits: l}, f)
			var taken atomic.Int64
			f.batch = func(n int) { taken.Add(int64(n)) }
			stream := dial(t, s.Address()).open(t.Context(), rpc)
			go func() {
				for n := 0; ; n++ {
					var m any = discovered(info(number("http://one.test/", n)))
					if rpc == "PutDiscovered" {
						m = &urlfrontierpb.DiscoveredBatch{Items: []*urlfrontierpb.URLInfo{info(
							number("http://one.test/", n))}}
					}
					if stream.SendMsg(m) != nil {
						return
					}
				}
			}()
			most := int64(l.Items)
			if rpc == "PutDiscovered" {
				most = int64(l.Batches)
			}
			testkit.Until(t, "the condition", func() bool { return s.memory.held() > 0 && taken.Load() > 0 })
			for range 20 {
				time.Sleep(5 * time.Millisecond) // gives it the chance to read too much
				held := s.memory.held()
				must.True(t, held <= most*1000, "%d bytes are held for %d messages", held, most)
			}
			assert.AtMost(t, taken.Load(), most, "of at most are taken without an acknowledgement")
			close(gate)
		})
	}
}

// gated returns a crawl whose puts wait until gate is closed.
func gated(t *testing.T, f *fakeCrawls, gate chan struct{}) *fakeCrawl {
	t.Helper()
	c, release, err := f.Use(t.Context(), "DEFAULT", true)
	must.Do(t, err)
	release()
	fake := c.(*fakeCrawl)
	fake.gate = gate
	return fake
}

// A few large messages that wait are bounded by their bytes.
func TestHeldBytes(t *testing.T) {
	f := newFakeCrawls()
	gate := make(chan struct{})
	f.crawls["DEFAULT"] = gated(t, f, gate)
	l := DefaultLimits()
	l.Stream, l.Held = 40_000, 100_000
	s := start(t, Options{Limits: l}, f)
	const size, streams = 4000, 6
	for range streams { // each has a connection: what one may not send keeps no other from sending
		stream := dial(t, s.Address()).open(t.Context(), "PutURLs")
		go func() {
			for n := range 100 {
				i := info(number("http://one.test/", n))
				i.Metadata = map[string]*pbList{"m": {Values: []string{strings.Repeat("v", size)}}}
				if stream.SendMsg(discovered(i)) != nil {
					return
				}
			}
			_ = stream.CloseSend()
		}()
		go func() {
			for stream.RecvMsg(new(urlfrontierpb.AckMessage)) == nil {
			}
		}()
	}
	testkit.Until(t, "the condition", func() bool { return s.memory.held() > l.Held/2 })
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		held := s.memory.held()
		must.True(t, held <= l.Held, "%d bytes are held", held)
	}
	close(gate)
	testkit.Until(t, "the condition", func() bool { return s.memory.held() == 0 })
}

// A client that never reads its acknowledgements, or the URLs that it gets, is cut off; URLs that it
// did not get are given back.
func TestSlowReaders(t *testing.T) {
	l := DefaultLimits()
	l.Send = 200 * time.Millisecond
	f := newFakeCrawls()
	s := start(t, Options{Limits: l}, f)
	slow := func() *client {
		return dial(t, s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	}
	c := slow()
	stream := c.open(t.Context(), "PutURLs")
	sent := 0
	for ; sent < 1_000_000; sent++ {
		if stream.SendMsg(discovered(info(number("http://one.test/"+strings.Repeat("x", 500), sent)))) != nil {
			break
		}
	}
	assert.Not(t, sent, 1_000_000, "a million items without a single acknowledgement read")
	testkit.Until(t, "the condition", func() bool { return s.streams.Load() == 0 && s.memory.held() == 0 })

	other := dial(t, start(t, Options{Limits: DefaultLimits()}, f).Address()) // this one may take its time
	do[pbEmpty](other, "SetDelay", &urlfrontierpb.QueueDelayParams{})
	var items []*urlfrontierpb.URLItem // more than fits anywhere, however soon the stream was cut off
	for n := range 10_000 {
		items = append(items, discovered(info(number("http://one.test/more"+strings.Repeat("x", 500), n))))
	}
	other.put(items...)
	stream = slow().open(t.Context(), "GetURLs")
	must.Do(t, errors.Join(stream.SendMsg(&urlfrontierpb.GetParams{Key: "one.test", DelayRequestable: 600}),
		stream.CloseSend()))
	fake := f.crawls["DEFAULT"]
	testkit.Until(t, "the condition", func() bool {
		fake.mu.Lock()
		defer fake.mu.Unlock()
		return fake.back > 0 && s.streams.Load() == 0
	})
}

// A silent stream ends after a while; a connection without RPCs is closed; one that answers pings
// lives.
func TestIdle(t *testing.T) {
	l := DefaultLimits()
	l.Idle, l.IdleConnection = time.Second, time.Second
	s := start(t, Options{Limits: l}, newFakeCrawls())
	stream := dial(t, s.Address()).open(t.Context(), "PutURLs")
	must.Do(t, stream.SendMsg(discovered(info("http://one.test/"))))
	var err error
	for err == nil { // the acknowledgement may be too late
		err = stream.RecvMsg(new(urlfrontierpb.AckMessage))
	}
	assert.True(t, !errors.Is(err, io.EOF), "the silent stream ends with %v", err)
	testkit.Until(t, "the condition", func() bool { return s.gate.Connections() == 0 })
}

// RPCs and connections beyond the bounds are refused; the others go on.
func TestBounds(t *testing.T) {
	l := DefaultLimits()
	l.Streams, l.Connections = 3, 4
	s := start(t, Options{Limits: l}, newFakeCrawls())
	c := dial(t, s.Address())
	var streams []grpc.ClientStream
	for range l.Streams {
		stream := c.open(t.Context(), "PutURLs")
		must.Do(t, errors.Join(stream.SendMsg(discovered(info("http://one.test/"))),
			stream.RecvMsg(new(urlfrontierpb.AckMessage))))
		streams = append(streams, stream)
	}
	more := c.open(t.Context(), "PutURLs")
	assert.Equal(t, status.Code(more.RecvMsg(new(urlfrontierpb.AckMessage))), codes.ResourceExhausted,
		"one stream more")
	_ = do[pbStats](c, "GetStats", &pbQueue{})
	for range 50 {
		conn := must.Get(net.Dial("tcp", s.Address()))(t)
		defer conn.Close()
	}
	_ = do[pbStats](c, "GetStats", &pbQueue{})
	assert.AtMost(t, s.gate.Connections(), l.Connections, "connections")
	if err := errors.Join(streams[0].SendMsg(discovered(info("http://one.test/2"))),
		streams[0].RecvMsg(new(urlfrontierpb.AckMessage))); err != nil {
		t.Errorf("a stream at work: %v", err)
	}
	big := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("x", 1<<20))
	assert.True(t, c.conn.Invoke(big, "/urlfrontier.URLFrontier/GetStats", &pbQueue{}, &pbStats{}) != nil,
		"a megabyte of metadata is taken")
}

// Only clients with the token get in, too many wrong ones are refused for a while, and browsers need
// the token.
func TestToken(t *testing.T) {
	s := start(t, Options{Token: "secret"}, newFakeCrawls())
	c := dial(t, s.Address())
	call := func(header ...string) codes.Code {
		ctx := metadata.AppendToOutgoingContext(t.Context(), header...)
		return status.Code(c.conn.Invoke(ctx, "/urlfrontier.URLFrontier/GetStats", &pbQueue{}, &pbStats{}))
	}
	assert.Equal(t, call(), codes.Unauthenticated, "no token")
	assert.Equal(t, call("authorization", "Bearer secret", "origin", "http://evil.test"), codes.OK,
		"a browser with the token")
	s.SetToken("other")
	assert.Equal(t, call("authorization", "Bearer other"), codes.OK, "the new token")
	s.SetToken("secret")
	for range failureBurst + 5 {
		call("authorization", "Bearer wrong")
	}
	assert.Equal(t, call("authorization", "Bearer secret"), codes.ResourceExhausted, "after many wrong ones")
	s = start(t, Options{}, newFakeCrawls())
	c = dial(t, s.Address())
	assert.Equal(t, call("origin", "http://"+s.Address()), codes.PermissionDenied, "a browser without a token")
	assert.Equal(t, call(), codes.OK)
}

// Beyond loopback it listens only with a token and TLS, or if it is told so.
func TestExposed(t *testing.T) {
	for _, o := range []Options{{}, {Token: "x"}, {TLSCert: "x"}, {Plaintext: true}} {
		o.Listen, o.Now, o.Log = "0.0.0.0:0", time.Now, slog.New(slog.DiscardHandler)
		s, err := Start(o, newFakeCrawls())
		assert.True(t, o.Plaintext == (err == nil) && (err == nil || errors.Is(err, ErrExposed)), "%+v: %v", o, err)
		if err == nil {
			_ = s.Close(t.Context())
		}
	}
}

// Close commits and acknowledges what has come, ends RPCs, and leaves nothing behind.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	f := newFakeCrawls()
	gate := make(chan struct{})
	f.crawls["DEFAULT"] = gated(t, f, gate)
	s := start(t, Options{}, f)
	c := dial(t, s.Address())
	stream := c.open(t.Context(), "PutURLs")
	for n := range 10 {
		must.Do(t, stream.SendMsg(discovered(info(number("http://one.test/", n)))))
	}
	watch, err := c.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, health.HealthWatchProcedure)
	must.Do(t, err)
	next := func() health.HealthCheckResponse_ServingStatus {
		var m health.HealthCheckResponse
		must.Do(t, watch.RecvMsg(&m))
		return m.GetStatus()
	}
	must.Do(t, errors.Join(watch.SendMsg(&health.HealthCheckRequest{}), watch.CloseSend()))
	assert.Equal(t, next(), health.HealthCheckResponse_SERVING, "it is not serving")
	testkit.Until(t, "the condition", func() bool { return s.memory.held() >= 10*int64(len("http://one.test/1")) })
	closed := make(chan error)
	go func() { closed <- s.Close(context.Background()) }()
	assert.Equal(t, next(), health.HealthCheckResponse_NOT_SERVING, "it is serving when it closes")
	close(gate)
	for n := range 10 {
		must.Do(t, stream.RecvMsg(new(urlfrontierpb.AckMessage)), "acknowledgement", n)
	}
	assert.Equal(t, status.Code(stream.RecvMsg(new(urlfrontierpb.AckMessage))), codes.Unavailable,
		"the stream ends with")
	_ = c.conn.Close()
	assert.NoError(t, <-closed)
	assert.Equal(t, f.uses, 0, "crawls are still in use")
	testkit.Until(t, "the condition", func() bool { return runtime.NumGoroutine() <= before })
}

// What cannot be committed is a FAIL, and the stream goes on.
func TestFailedPuts(t *testing.T) {
	f := newFakeCrawls()
	s := start(t, Options{}, f)
	c := dial(t, s.Address())
	c.put(discovered(info("http://one.test/")))
	f.crawls["DEFAULT"].failing = fmt.Errorf("the disk: %w", crawl.ErrNotRunning)
	assert.Equal(t, c.put(discovered(info("http://one.test/2")))[0].GetStatus(), urlfrontierpb.AckMessage_FAIL)
}

// Messages that come while others are committed go into one commit, and keep their order.
func TestGrouping(t *testing.T) {
	f := newFakeCrawls()
	gate := make(chan struct{})
	f.crawls["DEFAULT"] = gated(t, f, gate)
	var mu sync.Mutex
	var groups []int
	f.batch = func(n int) { mu.Lock(); groups = append(groups, n); mu.Unlock() }
	s := start(t, Options{}, f)
	stream := dial(t, s.Address()).open(t.Context(), "PutURLs")
	const n = 1000
	var bytes int64
	for i := range n {
		u := info(number("http://one.test/", i))
		bytes += messageBytes + itemBytes + bytesOf(u)
		must.Do(t, stream.SendMsg(discovered(u)))
	}
	testkit.Until(t, "the condition", func() bool { return s.memory.held() == bytes })
	close(gate)
	for i := range n {
		var ack urlfrontierpb.AckMessage
		if err := stream.RecvMsg(&ack); err != nil || ack.GetID() != number("http://one.test/", i) {
			t.Fatalf("acknowledgement %d: %v, %v", i, &ack, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(groups) > 3 { // the last message may have been on its way to the others
		t.Errorf("%d commits: %v", len(groups), groups)
	}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestHeavyHeldMemory: streams of large messages take no more memory than the budget of all, whatever their number, and
// however they are compressed; and idle streams that had large messages take none.
func TestHeavyHeldMemory(t *testing.T) {
	f := newFakeCrawls()
	gate := make(chan struct{})
	f.crawls["DEFAULT"] = gated(t, f, gate)
	l := DefaultLimits()
	l.Held = 48 << 20
	s := start(t, Options{Limits: l}, f)
	batch := &urlfrontierpb.DiscoveredBatch{ID: "large"}
	for n := range 300 {
		i := info(number("http://one.test/", n))
		i.Metadata = map[string]*pbList{"m": {Values: []string{strings.Repeat("v", 13<<10)}}}
		batch.Items = append(batch.Items, i)
	}
	text, err := proto.Marshal(batch)
	must.True(t, err == nil && len(text) <= l.Batch, "%d bytes, %v", len(text), err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); errors.Join(err, z.Close()) != nil {
		t.Fatal(err)
	}
	frame := func(flags byte, payload []byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(payload))), payload...)
	}
	plain, compressed := frame(0, text), frame(1, packed.Bytes())
	before := liveHeap()
	const streams, messages = 60, 3
	var served sync.WaitGroup
	ended := make(chan struct{})
	for n := range streams {
		of := plain
		if n%2 > 0 {
			of = compressed
		}
		served.Go(func() { sendFrames(t, s.Address(), of, messages, ended) })
	}
	testkit.Until(t, "the condition", func() bool { return s.memory.held() > l.Held/2 })
	most := int64(0)
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		most = max(most, liveHeap()-before)
	}
	// Besides the budget each stream has what was received and not read, and its goroutines.
	if bound := l.Held + streams*(512<<10); most > bound || s.memory.held() > l.Held {
		t.Errorf("%d streams hold %d KiB, want %d KiB at most", streams, most>>10, bound>>10)
	}
	t.Logf("%d KiB", most>>10)
	close(gate)
	testkit.Until(t, "the condition", func() bool {
		n, err := f.crawls["DEFAULT"].CountURLs(t.Context(), crawl.URLQuery{})
		return err == nil && n == 300 && s.memory.held() == 0 && s.streams.Load() == streams
	})
	if _, err := f.crawls["DEFAULT"].Delete(t.Context(), crawl.Deletion{}); err != nil { // the test's own memory
		t.Fatal(err)
	}
	assert.AtMost(t, liveHeap()-before, streams*(512<<10), streams, "idle streams hold KiB")
	close(ended)
	served.Wait()
}

// liveHeap is how many bytes are in use.
func liveHeap() int64 {
	var m runtime.MemStats
	for range 3 { // pools are emptied in two steps
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sendFrames sends the same bytes again and again in a PutDiscovered of a connection of its own, and leaves the
// stream open until ended. It has no copy of them.
func sendFrames(t *testing.T, address string, frame []byte, times int, ended <-chan struct{}) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	body, in := io.Pipe()
	go func() {
		for range times {
			if _, err := in.Write(frame); err != nil {
				return
			}
		}
		<-ended
		_ = in.Close()
	}()
	r, err := http.NewRequest(http.MethodPost, "http://"+address+urlfrontierpb.URLFrontierPutDiscoveredProcedure, body)
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Grpc-Encoding", "gzip")
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%v: %v", response.Trailer, err)
	}
}
