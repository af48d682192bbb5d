//go:build real

package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// machines are two network namespaces with a link between them: machines with kernels of their own, as far as the
// network goes.
type machines struct {
	t              *testing.T
	client, server string // the names of the namespaces
}

const clientNet, serverNet = "10.11.12.1", "10.11.12.2"

func newMachines(t *testing.T) *machines {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("it makes network namespaces: run it as root, with ip of iproute2")
	}
	m := &machines{t, fmt.Sprintf("amble-client-%d", os.Getpid()), fmt.Sprintf("amble-server-%d", os.Getpid())}
	for _, namespace := range []string{m.client, m.server} {
		m.ip("netns", "add", namespace)
		t.Cleanup(func() { m.ip("netns", "delete", namespace) })
	}
	const hardware = "02:00:00:00:00:02"
	m.ip("-n", m.client, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "address", hardware, "netns",
		m.server)
	m.ip("-n", m.client, "address", "add", clientNet+"/24", "dev", "eth0")
	m.ip("-n", m.server, "address", "add", serverNet+"/24", "dev", "eth0")
	m.ip("-n", m.client, "link", "set", "eth0", "up")
	m.link("up")
	// Without this, packets to the server would wait for up to 3 s for its hardware address when the link is cut.
	m.ip("-n", m.client, "neighbour", "add", serverNet, "lladdr", hardware, "dev", "eth0", "nud", "permanent")
	return m
}

func (m *machines) ip(arguments ...string) {
	m.t.Helper()
	if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		m.t.Fatalf("ip %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
}

// link cuts or restores the link, at the side of the server: "down" or "up".
func (m *machines) link(state string) { m.ip("-n", m.server, "link", "set", "eth0", state) }

// on calls f in a namespace: the sockets that it makes belong there.
func (m *machines) on(namespace string, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		done <- func() error {
			file, err := os.Open("/run/netns/" + namespace)
			if err != nil {
				return err
			}
			defer file.Close()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-done
}

// unsent reports whether the kernel of the client still has something to deliver.
func (m *machines) unsent() (is bool) {
	m.t.Helper()
	must.Do(m.t, m.on(m.client, func() error {
		table, err := os.ReadFile("/proc/thread-self/net/tcp")
		for _, line := range strings.Split(string(table), "\n") {
			if f := strings.Fields(line); len(f) > 4 && f[0] != "sl" && !strings.HasPrefix(f[4], "00000000:") {
				is = true
			}
		}
		return err
	}))
	return is
}

// TestRealCutOff: a request that was sent while the link was cut, and broken off since nobody answered, does not reach
// the server when the link is back.
func TestRealCutOff(t *testing.T) {
	m := newMachines(t)
	for _, proto := range []string{"HTTP/1.1", "HTTP/1.1 over TLS", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			var seen sync.Map // by path
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				seen.Store(r.URL.Path, r.Proto)
			}))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.Listener.Close()
			must.Do(t, m.on(m.server, func() (err error) {
				s.Listener, err = net.Listen("tcp4", serverNet+":0")
				return err
			}))
			scheme, roots := "http", x509.NewCertPool()
			if s.EnableHTTP2 = proto == "HTTP/2.0"; proto == "HTTP/1.1" {
				s.Start()
			} else {
				s.StartTLS()
				scheme = "https"
				roots.AddCert(s.Certificate())
			}
			defer s.Close()
			c := newClient(t, quick(short(time.Second), func(o *Options) {
				o.TLSConfig = &tls.Config{RootCAs: roots}
				o.Dial = func(ctx context.Context, network, address string) (c net.Conn, err error) {
					err = m.on(m.client, func() (err error) {
						c, err = new(net.Dialer).DialContext(ctx, network, address)
						return err
					})
					return c, err
				}
			}))
			get := func(path string) error {
				r, err := c.Do(t.Context(), Request{Address: netip.MustParseAddr(serverNet),
					URL: parseURL(t, fmt.Sprintf("%s://example.com:%d%s", scheme, securePort(s.Listener), path))})
				_ = r.Close()
				return err
			}
			until := func(done func() bool) {
				t.Helper()
				for end := time.Now().Add(time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
					must.True(t, !time.Now().After(end), "the server does not answer, or something is not delivered")
				}
			}
			until(func() bool { return get("/before") == nil })
			m.link("down")
			assert.True(t, wantKind(t, get("/cut"), KindHeaderTimeout).Sent, "nothing was sent on the connection")
			m.link("up")
			until(func() bool { return get("/after") == nil && !m.unsent() })
			got, _ := seen.Load("/after")
			assert.True(t, got == strings.TrimSuffix(proto, " over TLS"), "the server has answered over %v", got)
			_, found := seen.Load("/cut")
			assert.True(t, !found, "the server has received a request that was broken off while the link was cut")
		})
	}
}
