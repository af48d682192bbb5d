package zoo

import (
	"strings"
	"time"
)

// headers are servers whose header never ends, or is not one of HTTP.
func headers() []server {
	line := "X-Line: " + strings.Repeat("y", 1000) + "\r\n"
	long := strings.Repeat("z", 32<<10)
	return []server{
		after("silent", (*client).wait),
		after("header-drips", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\nX: ")
			g.forever(20*time.Millisecond, "y")
		}),
		after("header-endless", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n")
			g.forever(0, line)
		}),
		after("header-line-endless", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\nX: ")
			g.forever(0, long)
		}),
		after("header-name-endless", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n")
			g.forever(0, long)
		}),
		after("status-endless", func(g *client) {
			g.send("HTTP/1.1 200 ")
			g.forever(0, long)
		}),
		after("noise", func(g *client) { g.forever(0, "\x00\xff\x01\n") }),
		after("interim-flood", func(g *client) { g.forever(0, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") }),
		after("interim-large", func(g *client) { g.forever(0, "HTTP/1.1 103 Early Hints\r\nLink: "+long+"\r\n\r\n") }),
		answers("switches-protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
		answers("http-0.9", "<html><a href=/old>old</a></html>\n"),
		answers("speaks-ssh", "SSH-2.0-OpenSSH_9.9\r\n"),
		answers("speaks-smtp", "220 mail.example ESMTP\r\n502 5.5.2 not recognized\r\n"),
		answers("status-text", "HTTP/1.1 two hundred\r\n\r\n"),
		answers("status-zero", "HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n"),
		answers("status-large", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
		answers("status-999", "HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n"),
		answers("version-9", "HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"),
		answers("two-lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
		answers("negative-length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
		answers("length-overflow", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
		answers("unknown-transfer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, mystery\r\n\r\n"),
		answers("unasked-304", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"),
		answers("nul-in-header", "HTTP/1.1 200 OK\r\nX\x00Y: z\r\n\r\n"),
		answers("no-colon", "HTTP/1.1 200 OK\r\nthis is no field\r\n\r\n"),
		{name: "closes-at-once", path: "/", serve: func(*client) {}},
		{name: "resets-at-once", path: "/", serve: (*client).reset},
		answers("closes-after-request"),
		answers("closes-in-header", "HTTP/1.1 200 OK\r\nX:"),
		after("resets-after-request", (*client).reset),
		after("resets-in-header", func(g *client) {
			g.send("HTTP/1.1 200")
			g.reset()
		}),
	}
}
