package testweb

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestMeshIsConnected(t *testing.T) {
	for _, m := range []Mesh{
		{Hosts: 5, Pages: 40, Links: 6, PageBytes: 4000},
		{Hosts: 3, Pages: 100, Links: 2, Addresses: 2},
		{Hosts: 1, Pages: 7, Links: 20, PageBytes: 100},
		{Hosts: 40, Pages: 1, Links: 3},
	} {
		t.Run(fmt.Sprintf("%+v", m), func(t *testing.T) {
			web := startMesh(t, m)
			client := newClient(t, web)
			seen := map[string]bool{web.URL(m.Host(0), "/"): true}
			for queue := []string{web.URL(m.Host(0), "/")}; len(queue) > 0; queue = queue[1:] {
				response, body := get(t, client, queue[0])
				if response.StatusCode != 200 {
					t.Fatalf("%s: status %d", queue[0], response.StatusCode)
				}
				links := anchors(t, response, body)
				if len(links) != m.Links {
					t.Fatalf("%s: %d links, want %d", queue[0], len(links), m.Links)
				}
				if m.PageBytes > 1000 && (len(body) < m.PageBytes*8/10 || len(body) > m.PageBytes*12/10) {
					t.Fatalf("%s: %d bytes, want about %d", queue[0], len(body), m.PageBytes)
				}
				for _, link := range links {
					if !seen[link] {
						seen[link] = true
						queue = append(queue, link)
					}
				}
			}
			assert.Equal(t, len(seen), m.TotalPages(), "pages are reached")
		})
	}
}

func startMesh(t *testing.T, m Mesh) *Web {
	t.Helper()
	web := must.Get(NewMesh(m, Config{}))(t)
	t.Cleanup(func() {
		assert.NoError(t, web.Close(), "close")
	})
	return web
}

// anchors returns the absolute targets of a page's links.
func anchors(t *testing.T, response *http.Response, body string) []string {
	t.Helper()
	document := must.Get(goquery.NewDocumentFromReader(strings.NewReader(body)))(t)
	return document.Find("a[href]").Map(func(_ int, a *goquery.Selection) string {
		link := must.Get(response.Request.URL.Parse(a.AttrOr("href", "")))(t)
		return link.String()
	})
}

func TestMeshHasNoOtherPages(t *testing.T) {
	m := Mesh{Hosts: 2, Pages: 10, Links: 3}
	web := startMesh(t, m)
	client := newClient(t, web)
	for path, want := range map[string]int{
		m.Path(9): 200, m.Path(10): 404, "/section-1/page-2": 404, "/page-1": 404, "/x": 404, "/section-0/page-0": 404,
		"/robots.txt": 200,
	} {
		response, _ := get(t, client, web.URL(m.Host(1), path))
		assert.True(t, response.StatusCode == want, "%s: status %d, want %d", path, response.StatusCode, want)
	}
}

func TestMeshIsRecorded(t *testing.T) {
	m := Mesh{Hosts: 2, Pages: 10, Links: 3, Addresses: 1}
	web := startMesh(t, m)
	client := newClient(t, web)
	get(t, client, web.URL(m.Host(0), m.Path(3)))
	get(t, client, web.URL(m.Host(1), "/none"))
	log := finished(t, web)
	assert.True(t, len(log) == 2 && log[0].Path == m.Path(3) && log[0].Status == 200 && log[1].Status == 404 &&
		log[1].Host == m.Host(1), "recorded %+v", log)
	assert.True(t, web.Served() == 2 && web.ServedBy(m.Host(1)) == 1 &&
		web.Address(m.Host(0)) == web.Address(m.Host(1)),
		"served %d, by the second host %d; want 2 and 1, at one address", web.Served(), web.ServedBy(m.Host(1)))
}

func FuzzMeshRequest(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: h0.mesh.test:80\r\nConnection: close\r\n\r\n"))
	f.Add([]byte("GET\n\n"))
	f.Add([]byte("GET / \nHost:\xf6\n\n"))
	f.Add([]byte("GET / HTTP/1.1\nHost\n" + strings.Repeat("a:b\n", 200)))
	s := newMeshServer(Mesh{Hosts: 1, Pages: 3, Links: 2}, &Web{sites: map[string]*site{"h0.mesh.test": {}}})
	f.Fuzz(func(t *testing.T, raw []byte) {
		q, ok := readMeshRequest(bufio.NewReader(strings.NewReader(string(raw))))
		if !ok {
			return
		}
		response := s.answer(nil, q).append(nil)
		_, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(response))), nil)
		assert.True(t, err == nil, "answer to %q: %v", raw, err)
	})
}

// BenchmarkMesh fetches with a client that costs almost nothing, so that the figure is about the
// server.
func BenchmarkMesh(b *testing.B) {
	for _, countOnly := range []bool{true, false} {
		b.Run(fmt.Sprintf("count-only=%v", countOnly), func(b *testing.B) {
			m := Mesh{Hosts: 100, Pages: 1000, Links: 20, PageBytes: 8000}
			web := must.Get(NewMesh(m, Config{CountOnly: countOnly, MaxRequests: 1 << 30}))(b)
			defer web.Close()
			fetchRaw(b, web, m, 16)
		})
	}
}

func fetchRaw(b *testing.B, web *Web, m Mesh, clients int) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for h := range clients {
		host := m.Host(h)
		c := must.Get(net.Dial("tcp", netip.AddrPortFrom(web.Address(host), web.Port()).String()))(b)
		defer c.Close()
		wait.Go(func() {
			answers := bufio.NewReaderSize(c, 16<<10)
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: amble/1\r\n\r\n",
					m.Path(int(i)%m.Pages), host, web.Port())
				if err != nil {
					b.Error(err)
					return
				}
				length := 0
				for {
					line, err := answers.ReadSlice('\n')
					if err != nil {
						b.Error(err)
						return
					}
					if len(line) == 2 {
						break
					}
					if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
						_, _ = fmt.Sscan(value, &length)
					}
				}
				if _, err := io.CopyN(io.Discard, answers, int64(length)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}
