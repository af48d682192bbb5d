package testweb

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Routes maps request URIs to handlers: the path with its query as sent, else the path alone, else
// 404. Unlike http.ServeMux it never redirects.
type Routes map[string]http.Handler

// ServeHTTP handles a request.
func (routes Routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, key := range []string{r.RequestURI, r.URL.EscapedPath()} {
		if h := routes[key]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
	}
	Status(http.StatusNotFound).ServeHTTP(w, r)
}

// hostOf returns the host of a Host header, in lower case and without port.
func hostOf(header string) string {
	host, _ := splitPort(header)
	return strings.ToLower(host)
}

// splitPort cuts a Host header before the colon of its port. No site has an IPv6 address as its
// host.
func splitPort(header string) (host, port string) {
	if i := strings.LastIndexByte(header, ':'); i >= 0 {
		return header[:i], header[i:]
	}
	return header, ""
}

// onPort adds the port of the request, which all sites share, to a link to another site
// ("//docs.amble.test/a"). It returns other links unchanged.
func onPort(link string, r *http.Request) string {
	rest, ok := strings.CutPrefix(link, "//")
	if !ok {
		return link
	}
	host, path, _ := strings.Cut(rest, "/")
	_, port := splitPort(r.Host)
	return "//" + host + port + "/" + path
}

// Page is an HTML page with a title and links. A link to another site of the web has the form
// "//host/path", without a port.
func Page(title string, links ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		title := html.EscapeString(title)
		fmt.Fprintf(&b, "<!DOCTYPE html>\n<html><head><title>%s</title></head><body>\n<h1>%s</h1>\n", title, title)
		for _, link := range links {
			link = html.EscapeString(onPort(link, r))
			fmt.Fprintf(&b, "<p><a href=\"%s\">%s</a></p>\n", link, link)
		}
		b.WriteString("</body></html>\n")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(b.String()))
	})
}

// Robots is a robots.txt file.
func Robots(text string) http.Handler { return Content("text/plain; charset=utf-8", []byte(text)) }

// Content is a body of any type.
func Content(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
}

// Redirect redirects to location, which is sent unchanged, except that the port is added to
// "//host/path".
func Redirect(status int, location string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", onPort(location, r))
		w.WriteHeader(status)
	})
}

// Status is a short HTML page with the text of its status.
func Status(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := fmt.Sprintf("%d %s", status, http.StatusText(status))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<!DOCTYPE html>\n<title>%s</title>\n<h1>%s</h1>\n", text, text)
	})
}

// RetryAfter is Status with Retry-After headers, seconds or HTTP dates, one line for each value.
func RetryAfter(status int, values ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Retry-After"] = values
		Status(status).ServeHTTP(w, r)
	})
}

// Slow waits before h responds, or until the client leaves.
func Slow(wait time.Duration, h http.Handler) http.Handler {
	if wait <= 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// Flaky handles the first n requests with bad and the later ones with good.
func Flaky(n int, bad, good http.Handler) http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) <= int64(n) {
			bad.ServeHTTP(w, r)
			return
		}
		good.ServeHTTP(w, r)
	})
}

// Reset resets the connection (TCP RST) instead of responding.
func Reset() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if recorded, ok := c.(*conn); ok {
			resetOnClose(recorded.Conn)
		} else {
			resetOnClose(c)
		}
		_ = c.Close()
	})
}

func resetOnClose(c net.Conn) {
	if tcp, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
}

// Cut announces more bytes than it sends, and then closes the connection.
func Cut(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", fmt.Sprint(2*len(body)+1))
		_, _ = w.Write(body)
		panic(http.ErrAbortHandler)
	})
}
