package testweb

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// addressGroups maps each host to the number of its address.
type addressGroups struct {
	names []string
	index map[string]int
}

func groupSites(sites []Site, reach Reach) (addressGroups, error) {
	g := addressGroups{index: make(map[string]int, len(sites))}
	numbers := make(map[string]int)
	for _, s := range sites {
		if _, twice := g.index[s.Host]; twice || s.Host == "" || s.Host != strings.ToLower(s.Host) {
			return g, fmt.Errorf("testweb: host %q: must be given once, in lower case", s.Host)
		}
		name := s.Group
		if name == "" || reach != ByName {
			name = "host " + s.Host
		}
		n, known := numbers[name]
		if !known {
			n = len(g.names)
			numbers[name] = n
			g.names = append(g.names, name)
		}
		g.index[s.Host] = n
	}
	return g, nil
}

// portAttempts bounds the search for a port that is free at every address.
const portAttempts = 20

// listen opens n (at least one) listeners on one common port, or on any if it is 0: at 127.0.0.1,
// then at address(1), address(2) and so on. It returns only the first if the system has no other
// loopback address.
func listen(n int, port uint16, address func(int) netip.Addr, open listenFunc) ([]net.Listener, error) {
	var last error
	for range portAttempts {
		listeners, err := listenOnce(n, port, address, open)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return listeners, err
		}
		last = err
	}
	return nil, fmt.Errorf("no port free at all of %d loopback addresses: %w", n, last)
}

// listenFunc is net.Listen or a function like it.
type listenFunc = func(network, address string) (net.Listener, error)

// listenPorts opens n listeners at 127.0.0.1, each on a port of its own.
func listenPorts(n int, open listenFunc) (listeners []net.Listener, err error) {
	for range max(n, 1) {
		l, err := open("tcp4", "127.0.0.1:0")
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func listenOnce(n int, wanted uint16, address func(int) netip.Addr, open listenFunc) ([]net.Listener, error) {
	first, err := open("tcp4", fmt.Sprintf("127.0.0.1:%d", wanted))
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{first}
	port := strconv.Itoa(first.Addr().(*net.TCPAddr).Port)
	for i := 1; i < n; i++ {
		l, err := open("tcp4", net.JoinHostPort(address(i).String(), port))
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			closeAll(listeners[1:])
			return listeners[:1], nil
		}
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// loopback returns the i-th address after 127.0.0.1: 127.1.0.1, 127.1.0.2 and so on, 250 in each
// /24.
func loopback(i int) netip.Addr {
	i--
	return netip.AddrFrom4([4]byte{127, byte(1 + i/64_000), byte(i / 250 % 256), byte(1 + i%250)})
}

// listenSecurely starts a site that speaks TLS. Its record is that of what TLS carries.
func (w *Web) listenSecurely(s Site, c *Config) error {
	l, err := w.listen("tcp4", netip.AddrPortFrom(w.sites[s.Beside].address, 0).String())
	if err != nil {
		return fmt.Errorf("testweb: listen for https: %w", err)
	}
	one := newSite("https", s.Host, l.Addr(), s.Handler)
	one.name = s.Beside
	w.hosts, w.sites[s.Host] = append(w.hosts, s.Host), one
	l = &recordedListener{Listener: tls.NewListener(l, s.Secure), recorder: w.recorder, max: c.MaxConns, site: one}
	w.running.Go(func() { _ = w.server.Serve(l) })
	return nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}
