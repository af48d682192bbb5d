package zoo

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// numberedLinks is a page with links to 20 other pages of its host.
func numberedLinks() string { return "<p>start" + numbered(20, `<a href="/%d">p</a>`) }

// kept are servers that misuse kept connections.
func kept(c *certificates) []server {
	over := func(name string, do func(g *client)) server {
		return behindTLS(name, c.config(c.good), do)
	}
	page := func(target string) string {
		if target == "/" {
			return numberedLinks()
		}
		return "<p>this is " + target
	}
	return []server{
		over("tls-answers-twice", func(g *client) {
			for target := g.request(); target != ""; target = g.request() {
				g.send(sized("text/html", page(target)) + sized("text/html", `<a href="/forged">forged</a>`))
			}
		}),
		over("tls-answers-again", func(g *client) {
			for target := g.request(); target != ""; target = g.request() {
				g.together(sized("text/html", page(target)), sized("text/html", `<a href="/forged">forged</a>`))
			}
		}),
		over("tls-length-too-small", func(g *client) {
			for target := g.request(); target != ""; target = g.request() {
				body := page(target)
				g.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s%20s",
					len(body), body, "surplus"))
			}
		}),
	}
}

// behindTLS is a server that first completes a TLS handshake.
func behindTLS(name string, config *tls.Config, do func(*client)) server {
	return server{name: name, secure: true, path: "/", serve: func(g *client) {
		g.below = &gathering{Conn: g.raw}
		secured := tls.Server(g.below, config)
		if secured.Handshake() != nil {
			return
		}
		g.Conn = secured
		g.r.Reset(g)
		do(g)
	}}
}

// gathering is a connection that can keep what is written until it is told to send it.
type gathering struct {
	net.Conn
	keeps bool
	kept  []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if g.keeps {
		g.kept = append(g.kept, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// together sends parts, each in a record of TLS of its own, at once: on a slow machine too, none comes after the
// client's next request, whose answer it would be.
func (g *client) together(parts ...string) {
	g.below.keeps = true
	g.send(parts...)
	g.below.keeps = false
	_, _ = g.below.Write(g.below.kept)
	g.below.kept = nil
}

// stream is one request over HTTP/2.
type stream struct {
	*http2.Framer
	id   uint32
	path string
	nth  int // of the connection, from 0
}

// streams are servers that speak HTTP/2. Each gets every request, and returns whether the
// connection goes on.
func streams(c *certificates) (all []server) {
	config := c.config(c.good)
	config.NextProtos = []string{"h2"}
	either := c.config(c.good)
	either.NextProtos = []string{"h2", "http/1.1"}
	for _, one := range []struct {
		name string
		do   func(s *stream) bool
	}{
		{"h2-closes-at-second", func(s *stream) bool { return s.nth == 0 && s.page() }},
		{"h2-refuses-second", func(s *stream) bool {
			return s.nth%2 == 0 && s.page() || s.WriteRSTStream(s.id, http2.ErrCodeRefusedStream) == nil
		}},
		{"h2-goes-away-at-second", func(s *stream) bool {
			return s.nth == 0 && s.page() || s.WriteGoAway(s.id-2, http2.ErrCodeNo, nil) == nil
		}},
		{"h2-status-65736", func(s *stream) bool { return s.answer(":status", "65736") }},
		{"h2-status-word", func(s *stream) bool { return s.answer(":status", "fine") }},
		{"h2-two-lengths", func(s *stream) bool {
			return s.answer(":status", "200", "content-length", "0", "content-length", "1")
		}},
		{"h2-header-large", func(s *stream) bool {
			return s.answer(":status", "200", "x", strings.Repeat("y", 100<<10))
		}},
		{"h2-header-endless", func(s *stream) bool {
			_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id})
			return s.flood(func() error { return s.WriteContinuation(s.id, false, nil) })
		}},
		{"h2-interim-flood", func(s *stream) bool {
			return s.flood(func() error { return s.header(false, ":status", "103", "link", "</a>") })
		}},
		{"h2-unknown-frames", func(s *stream) bool {
			return s.flood(func() error { return s.WriteRawFrame(0xbe, 0, 0, nil) })
		}},
		{"h2-unknown-frames-later", func(s *stream) bool {
			return s.page() && s.flood(func() error { return s.WriteRawFrame(0xbe, 0, 0, make([]byte, 100)) })
		}},
		{"h2-settings-flood", func(s *stream) bool { return s.flood(func() error { return s.WriteSettings() }) }},
		{"h2-empty-content", func(s *stream) bool {
			_ = s.header(false, ":status", "200", "content-type", "text/html")
			return s.flood(func() error { return s.WriteData(s.id, false, nil) })
		}},
		{"h2-content-later", func(s *stream) bool {
			return s.page() && s.flood(func() error { return s.WriteData(s.id, false, make([]byte, 1000)) })
		}},
	} {
		all = append(all, behindTLS(one.name, config, func(g *client) { g.streams(one.do) }))
	}
	return append(all, behindTLS("h2-wants-http1", either, func(g *client) {
		if g.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
			g.streams(func(s *stream) bool { return s.WriteRSTStream(s.id, http2.ErrCodeHTTP11Required) == nil })
			return
		}
		for target := g.request(); target != ""; target = g.request() {
			g.send(sized("text/html", numberedLinks()))
		}
	}))
}

// streams speaks HTTP/2 until either side ends the connection.
func (g *client) streams(do func(*stream) bool) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(g.r, preface); err != nil {
		return
	}
	f := http2.NewFramer(g.Conn, g.r)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.WriteSettings()
	for nth := 0; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			if !do(&stream{Framer: f, id: frame.StreamID, path: frame.PseudoValue("path"), nth: nth}) {
				return
			}
			nth++
		}
	}
}

// page sends a page. The start page has links.
func (s *stream) page() bool {
	body := "<p>this is " + s.path
	if s.path == "/" {
		body = numberedLinks()
	}
	return s.header(false, ":status", "200", "content-type", "text/html") == nil &&
		s.WriteData(s.id, true, []byte(body)) == nil
}

// answer sends a response without a body.
func (s *stream) answer(fields ...string) bool { return s.header(true, fields...) == nil }

func (s *stream) header(end bool, fields ...string) error {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSizeLimit(0) // each block is independent
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	const most = 16 << 10
	first := block.Next(most)
	err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: first, EndHeaders: block.Len() == 0,
		EndStream: end})
	for err == nil && block.Len() > 0 {
		fragment := block.Next(most)
		err = s.WriteContinuation(s.id, block.Len() == 0, fragment)
	}
	return err
}

// flood sends the same frame again and again until the client has gone.
func (s *stream) flood(frame func() error) bool {
	for frame() == nil {
	}
	return false
}
