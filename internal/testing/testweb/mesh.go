package testweb

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Mesh is an arithmetical web for benchmarks: equal hosts with the same number of pages. Every page
// can be reached from the root of its host, and every host from every other. The same numbers
// always give the same web. A request puts its page together from rendered parts.
type Mesh struct {
	Hosts     int           // at least 1
	Pages     int           // of one host, the root included; at least 1
	Links     int           // on a page; at least 2. One in four leads to another host
	PageBytes int           // approximate; a page is at least as long as its links
	Wait      time.Duration // before each response, as of a network's round trip

	// Addresses is the number of IP addresses that the hosts are spread over evenly.
	// 0: each host has its own, and the web one listener for each.
	Addresses int
}

// TotalPages returns the number of pages of all hosts.
func (m Mesh) TotalPages() int { return m.Hosts * m.Pages }

// Host returns the name of host number h, from 0.
func (m Mesh) Host(h int) string { return fmt.Sprintf("h%d.mesh.test", h) }

// Path returns the path of page number i of any host; 0 is the root.
func (m Mesh) Path(i int) string { return string(appendMeshPath(nil, i)) }

func appendMeshPath(b []byte, i int) []byte {
	b = append(b, '/')
	if i == 0 {
		return b
	}
	b = append(b, "section-"...)
	b = strconv.AppendInt(b, int64(i%16), 10)
	b = append(b, "/page-"...)
	return strconv.AppendInt(b, int64(i), 10)
}

// pageNumber is the inverse of Path.
func (m Mesh) pageNumber(path string) (int, bool) {
	if path == "/" {
		return 0, true
	}
	i, err := strconv.Atoi(path[strings.LastIndexByte(path, '-')+1:])
	if err != nil || i < 1 || i >= m.Pages || m.Path(i) != path {
		return 0, false
	}
	return i, true
}

// target returns the host and page that link j of page i of host h leads to. The first half of the
// links form a tree of the host's pages; every fourth link leads to another host.
func (m Mesh) target(h, i, j int) (host, page int) {
	fanout := m.Links / 2
	switch child := i*fanout + j + 1; {
	case j < fanout && child < m.Pages:
		return h, child
	case j%4 == m.Links%4 || j == m.Links-1:
		return (h + 1 + i + j/4) % m.Hosts, (i * 3) % m.Pages
	default:
		return h, (i*31 + j*97 + 1) % m.Pages
	}
}

// NewMesh starts a web that serves only a mesh; the Sites of the Config are not used. It speaks
// just enough HTTP/1.1 for a crawler: GET without a body, kept connections, one write for each
// response.
func NewMesh(m Mesh, c Config) (*Web, error) {
	m.Hosts, m.Pages, m.Links = max(m.Hosts, 1), max(m.Pages, 1), max(m.Links, 2)
	c.Sites = make([]Site, m.Hosts)
	for h := range c.Sites {
		c.Sites[h].Host = m.Host(h)
		if m.Addresses > 0 {
			c.Sites[h].Group = "mesh " + strconv.Itoa(h%m.Addresses)
		}
	}
	return newWeb(c, func(w *Web) Server { return newMeshServer(m, w) })
}

const (
	meshHead = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<link rel=\"stylesheet\" " +
		"href=\"/style.css\">\n<title>"
	meshBody = "</title>\n</head>\n<body>\n<main>\n<ul class=\"links\">\n"
	meshFoot = "</main>\n<footer><p>A page of the mesh.</p></footer>\n</body>\n</html>\n"
	meshPara = "<p class=\"text\">The river <em>mesh</em> winds past mills and meadows, and each of its " +
		"<strong>bridges</strong> has a keeper who counts the boats, the barges and the days.</p>\n"
	meshRobots = "User-agent: *\nDisallow: /private/\n"
)

// filler returns the part that all pages have in common. Its length gives each page PageBytes.
func (m Mesh) filler() []byte {
	links := m.Links * len("<li><a href=\"/section-10/page-1000\">Page 1000</a></li>\n")
	missing := m.PageBytes - links - len(meshHead) - len(meshBody) - len(meshFoot)
	return []byte(strings.Repeat(meshPara, max(0, missing/len(meshPara))) + meshFoot)
}

// appendPage appends page i of host h.
func (m Mesh) appendPage(b []byte, h, i int, port string) []byte {
	b = append(b, meshHead...)
	b = append(b, "Page "...)
	b = strconv.AppendInt(b, int64(i), 10)
	b = append(b, meshBody...)
	for j := range m.Links {
		host, page := m.target(h, i, j)
		b = append(b, "<li><a href=\""...)
		if host != h {
			b = append(b, "http://h"...)
			b = strconv.AppendInt(b, int64(host), 10)
			b = append(b, ".mesh.test"...)
			b = append(b, port...)
		}
		b = appendMeshPath(b, page)
		b = append(b, "\">Page "...)
		b = strconv.AppendInt(b, int64(page), 10)
		b = append(b, "</a></li>\n"...)
	}
	return append(b, "</ul>\n"...)
}
