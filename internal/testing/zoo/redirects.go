package zoo

import (
	"strconv"
	"strings"
)

// redirect is a response with a redirect.
func redirect(to string) string {
	return "HTTP/1.1 302 Found\r\nLocation: " + to + "\r\nContent-Length: 0\r\n\r\n"
}

// redirects are servers with bad redirects.
func redirects() []server {
	return []server{
		answers("redirects-to-itself", redirect("/")),
		answers("redirects-to-file", redirect("file:///etc/passwd")),
		answers("redirects-to-gopher", redirect("gopher://127.0.0.1:70/")),
		answers("redirects-to-script", redirect("javascript:alert(1)")),
		answers("redirects-nowhere", redirect("")),
		answers("redirects-to-no-url", redirect("http://[::1/")),
		answers("redirects-to-long-url", redirect("/"+strings.Repeat("a", 50_000))),
		answers("redirects-to-private", redirect("http://10.1.2.3/")),
		answers("redirects-to-metadata", redirect("http://169.254.169.254/latest/meta-data/")),
		answers("redirects-to-mapped", redirect("http://[::ffff:10.1.2.3]/")),
		answers("redirects-to-decimal", redirect("http://167838211/")),
		{name: "redirect-chain", path: "/0", serve: func(g *client) {
			n, _ := strconv.Atoi(strings.TrimPrefix(g.request(), "/"))
			g.send(redirect("/" + strconv.Itoa(n+1)))
		}},
		{name: "redirect-loop", path: "/a", serve: func(g *client) {
			if g.request() == "/a" {
				g.send(redirect("/b"))
			} else {
				g.send(redirect("/a"))
			}
		}},
		{name: "redirect-grows", path: "/x", serve: func(g *client) { g.send(redirect(g.request() + "/x")) }},
		after("redirect-with-endless-body", func(g *client) {
			g.send("HTTP/1.1 301 Moved\r\nLocation: http://10.1.2.3/\r\n\r\n")
			g.forever(0, strings.Repeat("y", 32<<10))
		}),
		answers("two-locations", "HTTP/1.1 302 Found\r\nLocation: http://10.1.2.3/a\r\nLocation: "+
			"http://10.1.2.3/b\r\nContent-Length: 0\r\n\r\n"),
	}
}
