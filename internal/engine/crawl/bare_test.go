//go:build unix

package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/brotli"
	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// bareCrawl is the least that a crawler of a web does: fetch, links, a map.
type bareCrawl struct {
	client *http.Client
	find   findLinks
	mu     sync.Mutex
	more   *sync.Cond
	seen   map[string]bool
	queue  []string
	busy   int
	pages  int
}

// findLinks returns the targets of the links of a document.
type findLinks func(document io.Reader) (targets []string, err error)

// linksOfTree finds links as most crawlers do.
func linksOfTree(document io.Reader) (targets []string, err error) {
	doc, err := goquery.NewDocumentFromReader(document)
	if err != nil {
		return nil, err
	}
	doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
		targets = append(targets, s.AttrOr("href", ""))
	})
	return targets, nil
}

// linksOfTokens finds links without a tree, so it cannot know which of them count.
func linksOfTokens(document io.Reader) (targets []string, err error) {
	for z := html.NewTokenizer(document); ; {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() == io.EOF {
				return targets, nil
			}
			return nil, z.Err()
		case html.StartTagToken:
			name, more := z.TagName()
			if !bytes.Equal(name, []byte("a")) {
				continue
			}
			for more {
				var key, value []byte
				if key, value, more = z.TagAttr(); bytes.Equal(key, []byte("href")) {
					targets = append(targets, string(value))
				}
			}
		}
	}
}

// crawlBare crawls a web with net/http. It speaks HTTP/1.1, which takes net/http less time than HTTP/2.
func crawlBare(b *testing.B, web benchWeb, find findLinks) int {
	dialer := &net.Dialer{}
	transport := &http.Transport{
		MaxIdleConns: benchIdleConns, MaxIdleConnsPerHost: web.workers, DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, net.JoinHostPort(web.Address(host).String(), port))
		}}
	if web.Authorities() != nil {
		// Without these, most pages have a handshake of their own, which takes a third of its time.
		transport.MaxConnsPerHost = 2
		transport.TLSClientConfig = &tls.Config{
			RootCAs: x509.NewCertPool(), ClientSessionCache: tls.NewLRUClientSessionCache(benchIdleConns),
		}
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(web.Authorities())
	}
	defer transport.CloseIdleConnections()
	c := &bareCrawl{client: &http.Client{Transport: transport}, find: find, seen: make(map[string]bool)}
	c.more = sync.NewCond(&c.mu)
	for _, u := range seedsOf(web.Web, web.Sites()) {
		c.add(u)
	}
	var wg sync.WaitGroup
	for range web.workers {
		wg.Go(func() {
			for {
				u, ok := c.next()
				if !ok {
					return
				}
				links, err := c.fetch(u)
				assert.NoError(b, err)
				c.done(links)
			}
		})
	}
	wg.Wait()
	return c.pages
}

func (c *bareCrawl) add(u string) {
	if !c.seen[u] {
		c.seen[u] = true
		c.queue = append(c.queue, u)
	}
}

func (c *bareCrawl) next() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && c.busy > 0 {
		c.more.Wait()
	}
	if len(c.queue) == 0 {
		return "", false
	}
	u := c.queue[0]
	c.queue = c.queue[1:]
	c.busy++
	return u, true
}

func (c *bareCrawl) done(links []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range links {
		c.add(u)
	}
	c.busy--
	c.pages++
	c.more.Broadcast()
}

func (c *bareCrawl) fetch(text string) (links []string, err error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, text, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "gzip, br")
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", text, resp.Status)
	}
	var document io.Reader = resp.Body
	switch resp.Header.Get("Content-Encoding") {
	case "gzip":
		if document, err = gzip.NewReader(resp.Body); err != nil {
			return nil, err
		}
	case "br":
		document = brotli.NewReader(resp.Body)
	}
	targets, err := c.find(document)
	if err != nil {
		return nil, err
	}
	for _, href := range targets {
		if u, err := base.Parse(href); err == nil {
			u.Fragment = ""
			links = append(links, u.String())
		}
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return links, err
}
