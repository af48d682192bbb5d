package memnet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

const here = "198.51.100.1:80"

// bubble runs a test in virtual time with a listener on here.
func bubble(t *testing.T, o Options, f func(t *testing.T, n *Network, l net.Listener)) {
	synctest.Test(t, func(t *testing.T) {
		n := New(o)
		l := must.Get(n.Listen("tcp", here))(t)
		defer l.Close()
		f(t, n, l)
	})
}

// pair returns both ends of a connection.
func pair(t *testing.T, n *Network, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client = must.Get(n.Dial(t.Context(), "tcp", here))(t)
	server = must.Get(l.Accept())(t)
	return client, server
}

func TestLatency(t *testing.T) {
	bubble(t, Options{Latency: 30 * time.Millisecond}, func(t *testing.T, n *Network, l net.Listener) {
		start := time.Now()
		client, server := pair(t, n, l)
		defer client.Close()
		assert.Equal(t, time.Since(start), 60*time.Millisecond, "the dial takes")
		go func() {
			_, _ = io.Copy(server, server)
			_ = server.Close()
		}()
		start = time.Now()
		var b [5]byte
		_, _ = io.WriteString(client, "hello")
		_, err := io.ReadFull(client, b[:])
		if took := time.Since(start); err != nil || string(b[:]) != "hello" || took != 60*time.Millisecond {
			t.Errorf("%q after %v, %v", b, took, err)
		}
		_ = client.(*Conn).CloseWrite()
		if n, err := client.Read(b[:]); n != 0 || err != io.EOF {
			t.Errorf("%d, %v behind the end", n, err)
		}
	})
}

// TestRate: two responses share the line of the client.
func TestRate(t *testing.T) {
	bubble(t, Options{Rate: 10_000}, func(t *testing.T, n *Network, l net.Listener) {
		start := time.Now()
		ends := make(chan time.Duration, 2)
		for range 2 {
			client, server := pair(t, n, l)
			go func() {
				_, _ = server.Write(make([]byte, 50_000))
				_ = server.Close()
			}()
			go func() {
				assert.Returns(io.Copy(io.Discard, client))(t, 50_000, "bytes")
				_ = client.Close()
				ends <- time.Since(start)
			}()
		}
		<-ends
		took := <-ends
		assert.True(t, took >= 10*time.Second && took <= 11*time.Second, "100,000 bytes took %v", took)
	})
}

// TestWriterWaits: a writer is at most a window ahead of its reader, and continues when that reads.
func TestWriterWaits(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *Network, l net.Listener) {
		client, server := pair(t, n, l)
		defer client.Close()
		sent := bytes.Repeat([]byte("0123456789"), 30_000)
		written := make(chan time.Time, 1)
		go func() {
			_, err := server.Write(sent)
			assert.NoError(t, errors.Join(err, server.Close()))
			written <- time.Now()
		}()
		time.Sleep(time.Hour)
		select {
		case <-written:
			t.Error("the writer does not wait")
		default:
		}
		got, err := io.ReadAll(client)
		assert.True(t, err == nil && bytes.Equal(got, sent), "%d bytes of %d, %v", len(got), len(sent), err)
		<-written
	})
}

func TestDeadlines(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *Network, l net.Listener) {
		client, server := pair(t, n, l)
		defer client.Close()
		defer server.Close()
		var b [1]byte
		start := time.Now()
		_ = client.SetReadDeadline(start.Add(time.Second))
		if _, err := client.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		_ = client.SetReadDeadline(time.Time{})
		interrupt := time.AfterFunc(time.Minute, func() { _ = client.SetDeadline(time.Unix(1, 0)) })
		defer interrupt.Stop()
		_, err := client.Read(b[:])
		if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != time.Second+time.Minute {
			t.Errorf("interrupted: %v after %v", err, took)
		}
		assert.Fails(client.Write(b[:]))(t, os.ErrDeadlineExceeded, "written")
		_ = server.SetWriteDeadline(start.Add(time.Hour))
		written, err := server.Write(make([]byte, 1<<20))
		took := time.Since(start)
		assert.True(t, errors.Is(err, os.ErrDeadlineExceeded) && written >= maxBuffered && took == time.Hour,
			"%d bytes, %v after %v", written, err, took)
	})
}

func TestEnds(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *Network, l net.Listener) {
		var b [1]byte
		client, server := pair(t, n, l)
		_ = server.(*Conn).SetLinger(0)
		_ = server.Close()
		assert.Fails(client.Read(b[:]))(t, syscall.ECONNRESET, "read from a connection that was reset")
		assert.Fails(client.Write(b[:]))(t, syscall.EPIPE, "written to a connection that was reset")
		assert.Fails(server.Read(b[:]))(t, net.ErrClosed, "read after Close")
		assert.Is(t, server.Close(), net.ErrClosed, "closed twice")
		_ = client.Close()

		for _, address := range []string{"198.51.100.1:81", "198.51.100.2:80"} {
			assert.Fails(n.Dial(t.Context(), "tcp", address))(t, syscall.ECONNREFUSED, address)
		}
		n.Silence(netip.MustParseAddr("198.51.100.3"))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := n.Dial(ctx, "tcp", "198.51.100.3:80")
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("an address that is silent: %v after %v", err, took)
		}
		assert.Fails(n.Listen("tcp", here))(t, syscall.EADDRINUSE, "two listeners")
		waiting := must.Get(n.Dial(t.Context(), "tcp", here))(t)
		_ = l.Close()
		assert.Fails(waiting.Read(b[:]))(t, syscall.ECONNRESET, "never accepted")
		_ = waiting.Close()
		assert.Fails(l.Accept())(t, net.ErrClosed, "accept after Close")
	})
}

// TestHTTP: net/http serves and fetches over the network.
func TestHTTP(t *testing.T) {
	bubble(t, Options{Latency: time.Second}, func(t *testing.T, n *Network, l net.Listener) {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(w, r.RemoteAddr)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		transport := &http.Transport{DialContext: n.Dial}
		start := time.Now()
		resp := must.Get((&http.Client{Transport: transport}).Get("http://" + here + "/"))(t)
		line, _ := bufio.NewReader(resp.Body).ReadString('\n')
		_ = resp.Body.Close()
		if _, err := netip.ParseAddrPort(line); err != nil || time.Since(start) != time.Minute+4*time.Second {
			t.Errorf("%q after %v: %v", line, time.Since(start), err)
		}
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
}
