//go:build soak

package fetch

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// TestPeakOfDecoders prints the peak memory of 250 concurrent requests to servers that send the
// begin of a stream with a large window, wait for one another, and send the end.
func TestPeakOfDecoders(t *testing.T) {
	const hosts = 250
	for name, tt := range map[string]struct{ coding, begin, end string }{
		"br":   {"br", "\xcf\xff\xff\xff\x01nearly al", "l"},
		"zstd": {"zstd", "\x28\xb5\x2f\xfd\x00\x68\x08\x00\x00x\x09\x00\x00", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var arrived sync.WaitGroup
			arrived.Add(hosts)
			s := serve(t, func(c net.Conn, r *bufio.Reader) {
				readHead(r)
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", tt.coding,
					len(tt.begin+tt.end), tt.begin)
				arrived.Done()
				arrived.Wait()
				time.Sleep(500 * time.Millisecond) // most have read that; those that have not take less memory
				fmt.Fprint(c, tt.end)
			})
			pool := newSpool(t, 1<<20, 64<<20)
			client := newClient(t, quick(func(o *Options) { o.Spool, o.MaxIdleConns = pool, 0 }))
			runtime.GC()
			debug.FreeOSMemory()
			stop, peak := make(chan struct{}), make(chan uint64)
			go func() {
				var most uint64
				sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
				for {
					metrics.Read(sample)
					most = max(most, sample[0].Value.Uint64())
					select {
					case <-stop:
						peak <- most
						return
					case <-time.After(time.Millisecond):
					}
				}
			}()
			var all sync.WaitGroup
			for range hosts {
				all.Go(func() {
					if r, err := client.Do(context.Background(),
						Request{URL: s.url(t, "/"), Address: loopback}); err == nil {
						_ = r.Close()
					}
				})
			}
			all.Wait()
			close(stop)
			t.Logf("%s: %d MiB at most", name, <-peak>>20)
		})
	}
}
