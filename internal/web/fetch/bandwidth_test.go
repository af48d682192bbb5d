package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// inBuffers is what a connection of memnet holds that was sent and not read, and packet how much of
// that becomes known at a time.
const inBuffers, packet = 64 << 10, 1448

// sender serves bodies over a network in memory, and keeps when which bytes left.
type sender struct {
	network *memnet.Network

	mu   sync.Mutex
	sent map[string][]sending // by host
}

// sending is the number of bytes of all sendings up to an instant.
type sending struct {
	at    time.Time
	bytes int64
}

// sentConn is the server's end of a connection.
type sentConn struct {
	net.Conn
	s    *sender
	host string
}

// Write sends a packet at a time, and records each.
func (c *sentConn) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = c.Conn.Write(p[written:min(written+packet, len(p))])
		written += n
		c.s.note(c.host, n)
	}
	return written, err
}

func (s *sender) note(host string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range []string{host, ""} {
		list := s.sent[of]
		total := int64(n)
		if len(list) > 0 {
			total += list[len(list)-1].bytes
		}
		s.sent[of] = append(list, sending{time.Now(), total})
	}
}

// most returns by how many bytes those of a host, or of all for "", exceeded a rate in any period.
func (s *sender) most(host string, perSecond int64) (excess int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.sent[host]
	least := int64(0) // of what was sent before a time minus what was allowed until then
	for i, x := range list {
		allowed := int64(x.at.Sub(list[0].at).Seconds() * float64(perSecond))
		before := int64(0)
		if i > 0 {
			before = list[i-1].bytes
		}
		least = min(least, before-allowed)
		excess = max(excess, x.bytes-allowed-least)
	}
	return excess
}

// serveSent serves bodies of "x" over HTTP/1.1, as long as the path says, and afterwards what more
// does.
func serveSent(t *testing.T, config *tls.Config, more func(net.Conn)) *sender {
	t.Helper()
	s := &sender{network: memnet.New(memnet.Options{}), sent: make(map[string][]sending)}
	l := must.Get(s.network.Listen("tcp", "198.51.100.1:80"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				s.serve(c, config, more)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return s
}

func (s *sender) serve(c net.Conn, config *tls.Config, more func(net.Conn)) {
	counted := &sentConn{Conn: c, s: s}
	c = counted
	if config != nil {
		c = tls.Server(counted, config)
	}
	for r := bufio.NewReader(c); ; {
		head := readHead(r)
		if head == "" {
			return
		}
		_, host, _ := strings.Cut(head, "Host: ")
		counted.host, _, _ = strings.Cut(host, "\r\n")
		var length int
		_, _ = fmt.Sscanf(head, "GET /%d", &length)
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s",
			length, strings.Repeat("x", length))
		if more != nil && err == nil {
			more(c)
		}
	}
}

// receiveOf requests a body of a length.
func receiveOf(t *testing.T, c *Client, scheme, host string, length int) (*Response, error) {
	t.Helper()
	u := parseURL(t, fmt.Sprintf("%s://%s:80/%d", scheme, host, length))
	resp, err := c.Do(t.Context(), Request{URL: u, Address: netip.MustParseAddr("198.51.100.1")})
	if err != nil {
		return nil, err
	}
	assert.NoError(t, resp.Close())
	return resp, nil
}

// testTLS is the certificate of a server in virtual time, with the options to trust it.
func testTLS(t *testing.T) (server, client *tls.Config, from time.Time) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	return s.TLS, s.Client().Transport.(*http.Transport).TLSClientConfig, s.Certificate().NotBefore
}

// TestBandwidth: what servers send to several connections keeps to the limit of all and to those of
// hosts in any time, but for what buffers hold; and no bandwidth is left unused.
func TestBandwidth(t *testing.T) {
	const all, one, length, conns = 256 << 10, 32 << 10, 1 << 20, 3
	synctest.Test(t, func(t *testing.T) {
		s := serveSent(t, nil, nil)
		c := newClient(t, quick(func(o *Options) { o.Dial, o.MaxBody = s.network.Dial, 4<<20 }))
		c.SetBandwidth(all, func(host string) int64 {
			if host == "slow.test" {
				return one
			}
			return 0
		})
		start := time.Now()
		var requests sync.WaitGroup
		get := func(host string, length int) {
			requests.Go(func() {
				_, err := receiveOf(t, c, "http", host, length)
				assert.True(t, err == nil, "%v", err)
			})
		}
		for range conns {
			get("a.test", length)
			get("b.test", length)
		}
		get("slow.test", length/2)
		requests.Wait()
		took := time.Since(start)
		synctest.Wait()
		assert.AtMost(t, s.most("", all), int64((2*conns+1)*(inBuffers+packet+chunk)+all/10),
			"bytes more than the limit of all, at most are in buffers")
		assert.AtMost(t, s.most("slow.test:80", one), int64(inBuffers+packet+2*chunk),
			"bytes more than the limit of the host, at most are in buffers")
		received, waited := c.Received()
		want := time.Duration(received) * time.Second / all
		assert.True(t, took >= want-time.Second && took <= want+time.Second, "%d bytes took %v, want %v", received,
			took, want)
		assert.True(t, received >= 6*length+length/2 && waited >= took, "%d bytes received, %v waited", received,
			waited)
	})
}

// TestNoBandwidth: without a limit nothing waits.
func TestNoBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSent(t, nil, nil)
		c := newClient(t, quick(func(o *Options) { o.Dial = s.network.Dial }))
		c.SetBandwidth(0, func(string) int64 { return 0 })
		start := time.Now()
		resp, err := receiveOf(t, c, "http", "a.test", 1<<20)
		assert.True(t, err == nil && resp.Throttled == 0 && time.Since(start) == 0, "%v after %v", err,
			time.Since(start))
		_, waited := c.Received()
		assert.True(t, waited == 0, "waited for %v", waited)
		assert.Equal(t, len(c.bandwidth.hosts), 0, "hosts have limits")
	})
}

// TestBandwidthIsNotTheHostsFault: no timeout and no minimum rate counts the time that a request
// waits for bandwidth, with TLS and without; and the wait is known.
func TestBandwidthIsNotTheHostsFault(t *testing.T) {
	server, client, from := testTLS(t)
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(from))
				config := server
				if scheme == "http" {
					config = nil
				}
				s := serveSent(t, config, nil)
				c := newClient(t, quick(short(time.Second), func(o *Options) {
					o.Dial, o.TLSConfig, o.HTTP2 = s.network.Dial, client, false
					o.Timeout, o.MinRate = 2*time.Second, 64<<10
				}))
				c.SetBandwidth(0, func(string) int64 { return 1 << 10 })
				start := time.Now()
				const length = 200 << 10
				resp := must.Get(receiveOf(t, c, scheme, "example.com", length))(t)
				took := time.Since(start)
				assert.True(t, took >= (length-chunk)/(1<<10)*time.Second && resp.Throttled == took,
					"the request took %v and waited %v for bandwidth", took, resp.Throttled)
			})
		})
	}
}

// TestSlowHostUnderALimit: under a limit, too, a host that sends nothing is found to be slow after
// its own time.
func TestSlowHostUnderALimit(t *testing.T) {
	for name, tt := range map[string]struct {
		every time.Duration
		kind  Kind
		most  time.Duration // that the host takes
	}{
		"nothing comes": {time.Hour, KindBodyTimeout, 10 * time.Second},
		"it drips":      {time.Second, KindTooSlow, 22 * time.Second}, // two windows: the first begins well
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Options{})
				serveVirtually(t, network, func(c net.Conn) {
					_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n\r\n%s", strings.Repeat("x", 20<<10))
					for err == nil {
						time.Sleep(tt.every)
						_, err = io.WriteString(c, "x")
					}
				})
				c := newClient(t, quick(func(o *Options) { o.Dial = network.Dial }))
				c.SetBandwidth(1<<10, nil)
				other := time.AfterFunc(25*time.Second, func() { c.line.trip(0) })
				defer other.Stop()
				start := time.Now()
				_, err := receiveOf(t, c, "http", "a.test", 0)
				failure := wantKind(t, err, tt.kind)
				own := time.Since(start) - failure.Throttled
				assert.True(t, failure.Throttled >= 16*time.Second && own >= rateWindow && own <= tt.most,
					"%v after %v, with a wait of %v for bandwidth", err, time.Since(start), failure.Throttled)
				time.Sleep(2 * time.Hour) // until the server has seen that nothing listens
			})
		})
	}
}

// TestThrottledIsNotSlow: a request that waits for bandwidth is not slow.
func TestThrottledIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSent(t, nil, func(net.Conn) { time.Sleep(time.Hour) })
		c := newClient(t, quick(func(o *Options) { o.Dial, o.MinRate = s.network.Dial, 64<<10 }))
		c.SetBandwidth(1<<10, nil)
		ctx, cancel := context.WithCancel(t.Context())
		r := virtualRequest(t, "http://a.test/102400")
		r.Progress = new(Progress)
		ended := make(chan error)
		start := time.Now()
		go func() {
			_, err := c.Do(ctx, r)
			ended <- err
		}()
		for range 90 {
			time.Sleep(time.Second)
			must.True(t, !c.IsSlow(r.Progress, time.Since(start), 2*time.Second), "slow after %v", time.Since(start))
		}
		c.SetBandwidth(0, nil)
		time.Sleep(time.Second)
		cancel()
		<-ended
		time.Sleep(2 * time.Hour)
	})
}

// TestChangeOfBandwidth: another limit counts for a body that is being received.
func TestChangeOfBandwidth(t *testing.T) {
	const length = 1 << 20
	for name, tt := range map[string]struct {
		before, after int64
		took          time.Duration
	}{
		"more":         {1 << 10, 100 << 10, 20 * time.Second},
		"less":         {90 << 10, 1 << 10, 134 * time.Second},
		"none":         {1 << 10, 0, 10 * time.Second},
		"none of host": {-1 << 10, 0, 10 * time.Second},
		"of host":      {-1 << 10, -100 << 10, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveSent(t, nil, nil)
				c := newClient(t, quick(func(o *Options) { o.Dial = s.network.Dial }))
				set := func(n int64) {
					if n < 0 {
						c.SetBandwidth(0, func(string) int64 { return -n })
					} else {
						c.SetBandwidth(n, nil)
					}
				}
				set(tt.before)
				start := time.Now()
				timer := time.AfterFunc(10*time.Second, func() { set(tt.after) })
				defer timer.Stop()
				must.Get(receiveOf(t, c, "http", "a.test", length))(t)
				slack := time.Second
				if after := max(tt.after, -tt.after); after > 0 {
					slack += chunk * time.Second / time.Duration(after) // which came just before or after the change
				}
				took := time.Since(start)
				assert.True(t, took >= tt.took-slack && took <= tt.took+slack, "it took %v, want %v", took, tt.took)
			})
		})
	}
}

// TestChangeOfAnotherLimit: a wait goes on unless the limit that it waits for has changed.
func TestChangeOfAnotherLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSent(t, nil, nil)
		c := newClient(t, quick(func(o *Options) { o.Dial = s.network.Dial }))
		one := int64(1 << 20)
		of := func(host string) int64 {
			if host == "other.test" {
				return one
			}
			return 2 << 10
		}
		c.SetBandwidth(0, of) // so that the limit of the host is still remembered
		must.Get(receiveOf(t, c, "http", "other.test", 1000))(t)
		c.SetBandwidth(1<<10, of)
		ctx, cancel := context.WithCancel(t.Context())
		var changes sync.WaitGroup
		defer changes.Wait()
		defer cancel()
		changes.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(100 * time.Millisecond)
				one++
				c.SetBandwidth(1<<10, of)
			}
		})
		start := time.Now()
		must.Get(receiveOf(t, c, "http", "a.test", 100<<10))(t)
		assert.AtMost(t, time.Since(start), 102*time.Second, "100 KiB at 1 KiB/s took")
	})
}

// TestLargeLimit: a limit beyond all networks makes nothing wait.
func TestLargeLimit(t *testing.T) {
	for _, perSecond := range []int64{1 << 40, 1<<63 - 1} {
		l := newLimit(perSecond)
		var c claim
		now := time.Now()
		if l.claim(&c, 1<<30, now); c.ready.After(now) {
			t.Errorf("%d: a wait of %v", perSecond, c.ready.Sub(now))
		}
	}
}

// TestLimitWhileReceiving: a first limit counts for a body that is being received without one.
func TestLimitWhileReceiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Options{})
		serveVirtually(t, network, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			for range 2 {
				_, _ = io.WriteString(c, strings.Repeat("x", 100<<10))
				time.Sleep(5 * time.Second)
			}
		})
		c := newClient(t, quick(func(o *Options) { o.Dial = network.Dial }))
		start := time.Now()
		limited := time.AfterFunc(2*time.Second, func() { c.SetBandwidth(1<<10, nil) })
		defer limited.Stop()
		resp := must.Get(c.Do(t.Context(), virtualRequest(t, "http://a.test/")))(t)
		_ = resp.Close()
		if took := time.Since(start); took < 100*time.Second || took > 106*time.Second {
			t.Errorf("200 KiB, the second half at 1 KiB/s from second 5 on, took %v", took)
		}
	})
}

// TestCancelDuringAWait: the end of a request ends its wait for bandwidth at once, over each
// protocol.
func TestCancelDuringAWait(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveSent(t, nil, nil)
			c := newClient(t, quick(func(o *Options) { o.Dial = s.network.Dial }))
			checkCancel(t, c, "http://a.test/1000000")
		})
	})
	t.Run("HTTP/2", func(t *testing.T) {
		overHTTP2Virtually(t, 1<<20, func(t *testing.T, c *Client) { checkCancel(t, c, "https://example.com/") })
	})
}

// TestBandwidthOverHTTP2IsNotTheHostsFault: a timer does not count the waits of another goroutine
// over HTTP/2, which has begun the next wait when a piece of the body arrives.
func TestBandwidthOverHTTP2IsNotTheHostsFault(t *testing.T) {
	bounds := func(o *Options) { o.Timeout, o.MinRate = 2*time.Second, 64<<10 }
	overHTTP2Virtually(t, 1<<20, func(t *testing.T, c *Client) {
		c.SetBandwidth(1<<10, nil)
		resp := must.Get(c.Do(t.Context(), virtualRequest(t, "https://example.com/")))(t)
		_ = resp.Close()
	}, short(time.Second), bounds)
}

// TestNobodyWaitsForAClosedConnection: a connection that is closed because its body is too long
// ends the wait of its reader, over HTTP/2 too.
func TestNobodyWaitsForAClosedConnection(t *testing.T) {
	overHTTP2Virtually(t, 1<<20, func(t *testing.T, c *Client) {
		c.SetBandwidth(64, nil)
		r := virtualRequest(t, "https://example.com/")
		r.MaxBody = 1000
		resp, err := c.Do(t.Context(), r)
		must.True(t, err == nil && resp.Truncated, "%v, want a body that is cut", err)
		_ = resp.Close()
		synctest.Wait()
		_, before := c.Received()
		time.Sleep(time.Hour)
		_, after := c.Received()
		assert.True(t, after == before, "something went on to wait for %v", after-before)
	})
}

// checkCancel cancels a request in the middle of a wait.
func checkCancel(t *testing.T, c *Client, u string) {
	t.Helper()
	c.SetBandwidth(64, nil) // a wait of a minute for each piece
	ctx, cancel := context.WithCancel(t.Context())
	const after = 90 * time.Second
	time.AfterFunc(after, cancel)
	start := time.Now()
	_, err := c.Do(ctx, virtualRequest(t, u))
	wantKind(t, err, KindCanceled)
	assert.Equal(t, time.Since(start), after, "it ended after")
	synctest.Wait()
	_, waited := c.Received()
	assert.True(t, waited <= after, "something goes on to wait: %v", waited)
}

// overHTTP2Virtually runs a test with a client, and with a server of bodies of a length over
// HTTP/2.
func overHTTP2Virtually(t *testing.T, length int, test func(*testing.T, *Client), change ...func(*Options)) {
	t.Helper()
	server, client, from := testTLS(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(from))
		network := memnet.New(memnet.Options{})
		l := must.Get(network.Listen("tcp", "198.51.100.1:443"))(t)
		serving := &http.Server{TLSConfig: server,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(make([]byte, length))
			})}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = serving.ServeTLS(l, "", "")
		}()
		dial := func(o *Options) { o.Dial, o.TLSConfig = network.Dial, client }
		c := newClient(t, quick(append(change, dial)...))
		test(t, c)
		c.Close()
		_ = serving.Close()
		<-served
		time.Sleep(time.Hour) // until the handlers have seen that nothing listens
	})
}

// TestBandwidthOverHTTP2: streams keep to the limit, and the timeouts do not count the waits, which
// happen in another goroutine.
func TestBandwidthOverHTTP2(t *testing.T) {
	overHTTP2Virtually(t, 1<<20, func(t *testing.T, c *Client) {
		c.SetBandwidth(16<<10, nil)
		start := time.Now()
		for range 2 { // the second one over the same connection
			resp := must.Get(c.Do(t.Context(), virtualRequest(t, "https://example.com/")))(t)
			assert.True(t, resp.Proto == "HTTP/2.0" && resp.Throttled >= 60*time.Second, "%s, waited %v", resp.Proto,
				resp.Throttled)
			_ = resp.Close()
		}
		took := time.Since(start)
		assert.True(t, took >= 127*time.Second && took <= 131*time.Second, "2 MiB at 16 KiB/s took %v", took)
	})
}

// TestTripsUnderALimit: a wait for bandwidth makes no round trip a slow one, over a kept connection
// neither.
func TestTripsUnderALimit(t *testing.T) {
	check := func(t *testing.T, c *Client, u, proto string) {
		for range 2 {
			time.Sleep(2 * quickFor)
			c.SetBandwidth(1<<10, nil)
			resp := must.Get(c.Do(t.Context(), virtualRequest(t, u)))(t)
			assert.True(t, resp.Proto == proto && resp.Throttled >= 2*quickTrip && c.line.isQuick(),
				"%s, waited %v, the line is quick: %t", resp.Proto, resp.Throttled, c.line.isQuick())
			_ = resp.Close()
			c.SetBandwidth(0, nil)
		}
	}
	t.Run("HTTP/1.1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveSent(t, nil, nil)
			check(t, newClient(t, quick(func(o *Options) { o.Dial = s.network.Dial })),
				"http://a.test/4000", "HTTP/1.1")
		})
	})
	t.Run("HTTP/2", func(t *testing.T) {
		overHTTP2Virtually(t, 4000, func(t *testing.T, c *Client) { check(t, c, "https://example.com/", "HTTP/2.0") })
	})
}

// TestLimitsOfHostsAreForgotten: the limits of hosts exist while they are needed, and a host gets
// its burst once.
func TestLimitsOfHostsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSent(t, nil, nil)
		c := newClient(t, quick(func(o *Options) { o.Dial = s.network.Dial }))
		c.SetBandwidth(0, func(string) int64 { return 1 << 10 })
		var failed error
		for i := range 1000 {
			_, err := receiveOf(t, c, "http", fmt.Sprintf("h%d.test", i), 100)
			failed = errors.Join(failed, err)
			time.Sleep(100 * time.Millisecond)
		}
		must.Do(t, failed)
		if n := len(c.bandwidth.hosts); n > 10 || c.bandwidth.refilling.Len() != n {
			t.Errorf("%d hosts have limits, %d wait to be forgotten", n, c.bandwidth.refilling.Len())
		}
		start := time.Now()
		for range 100 {
			must.Get(receiveOf(t, c, "http", "a.test", 1000))(t)
		}
		assert.AtLeast(t, time.Since(start), 93*time.Second, "100 KB at 1 KiB/s took")
	})
}
