package testweb

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
)

// Proxy returns the URL of an HTTP proxy that leads to the sites, and nowhere else. A tunnel through it is no request:
// what it carries to a site with TLS is recorded there.
func (w *Web) Proxy() string { return w.scheme + "://" + w.listening[0].String() }

// tunnel connects a client of the proxy with the site that it names, and reports whether there is one.
func (w *Web) tunnel(rw http.ResponseWriter, r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return false
	}
	for _, s := range w.sites {
		if s.name != host || strconv.Itoa(int(s.port)) != port {
			continue
		}
		to, err := w.dial(r.Context(), "tcp", netip.AddrPortFrom(s.address, s.port).String())
		if err != nil {
			return false
		}
		defer to.Close()
		from, buffered, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return false
		}
		defer from.Close()
		end := context.AfterFunc(w.context, func() { _, _ = from.Close(), to.Close() })
		defer end()
		if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return true
		}
		w.running.Go(func() {
			_, _ = io.Copy(to, buffered)
			_ = to.Close()
		})
		_, _ = io.Copy(from, to)
		return true
	}
	return false
}
