package zoo

import (
	"strings"
	"time"
)

// bodies are servers with a good header and a bad body.
func bodies() []server {
	const html = "Content-Type: text/html\r\n"
	part := strings.Repeat("words and words ", 2000)
	chunked := "HTTP/1.1 200 OK\r\n" + html + "Transfer-Encoding: chunked\r\n\r\n"
	return []server{
		after("body-stalls", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n" + html + "Content-Length: 1000\r\n\r\n<p>begin")
			g.wait()
		}),
		after("body-drips", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n" + html + "\r\n")
			g.forever(20*time.Millisecond, "x")
		}),
		after("body-endless", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n" + html + "\r\n")
			g.forever(0, part)
		}),
		after("body-endless-chunks", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
			g.forever(0, strings.Repeat("10\r\nsixteen bytes...\r\n", 1000))
		}),
		after("body-huge-length", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9223372036854775807\r\n\r\n")
			g.forever(0, part)
		}),
		answers("body-short", "HTTP/1.1 200 OK\r\n"+html+"Content-Length: 1000\r\n\r\n<p>short"),
		answers("body-long", "HTTP/1.1 200 OK\r\n"+html+"Content-Length: 5\r\n\r\n<p>as it goes on and on"),
		answers("body-smuggled", chunked+"5\r\n<p>ok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
		answers("length-and-chunks", "HTTP/1.1 200 OK\r\n"+html+"Content-Length: 3\r\nTransfer-Encoding: "+
			"chunked\r\n\r\n5\r\n<p>ok\r\n0\r\n\r\n"),
		answers("chunk-half", chunked+"100\r\nabc"),
		answers("chunk-last-missing", chunked+"3\r\nabc\r\n"),
		answers("chunk-bad-length", chunked+"zz\r\nabc\r\n"),
		answers("chunk-huge-length", chunked+"FFFFFFFFFFFFFFFFFF\r\nabc\r\n"),
		after("chunk-extensions", func(g *client) {
			g.send(chunked)
			g.forever(0, "1;"+strings.Repeat("e", 3000)+"\r\nx\r\n")
		}),
		after("trailers-endless", func(g *client) {
			g.send(chunked + "0\r\n")
			g.forever(0, "X: "+strings.Repeat("t", 3000)+"\r\n")
		}),
		after("resets-in-body", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n" + html + "Content-Length: 1000\r\n\r\n<p>begin")
			g.reset()
		}),
		after("resets-in-large-body", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\n" + html + "Content-Length: 100000000\r\n\r\n")
			for range 60 { // enough to be in a file
				g.send(part)
			}
			g.reset()
		}),
	}
}
