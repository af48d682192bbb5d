package todayweb

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestHeavyToday fetches all pages of some hosts: their sizes, their parts, their encodings, protocols
// and connections are those of the description.
func TestHeavyToday(t *testing.T) {
	today := Web{Hosts: 16, Pages: 4, PerConnection: 2}
	w := must.Get(New(today))(t)
	defer w.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.Authorities())
	dials := map[string]int{}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			dials[host]++
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(w.Address(host).String(), port))
		}}
	defer transport.CloseIdleConnections()
	protocols, codings, families := map[string]int{}, map[string]int{}, map[bool]int{}
	var sizes []float64
	for h := range today.Hosts {
		host := today.Host(h)
		families[w.Address(host).Is6()]++
		for i := range today.Pages {
			body, coding, proto := getToday(t, transport, w.URL(host, todayPath(i)))
			protocols[proto]++
			codings[coding]++
			sizes = append(sizes, math.Log(float64(len(body))))
			if links := countAnchors(body); links < len(body)/4000 {
				t.Errorf("%s%s: %d links in %d bytes", host, todayPath(i), links, len(body))
			}
		}
		assert.Equal(t, dials[host], today.Pages/today.PerConnection, host, "connections for", today.Pages, "pages")
	}
	slices.Sort(sizes)
	if median := math.Exp(sizes[len(sizes)/2]); median < 80e3 || median > 240e3 {
		t.Errorf("the median size is %.0f", median)
	}
	assert.True(t, protocols["HTTP/2.0"] == 3*protocols["HTTP/1.1"] && codings["gzip"] == 4*codings[""] &&
		codings["br"] == 3*codings[""], "protocols %v, codings %v", protocols, codings)
	assert.True(t, families[true] == 1 || families[true] == 0, "hosts that have IPv6: %v", families)
}

// getToday fetches a page and returns its decoded body.
func getToday(t *testing.T, transport *http.Transport, u string) (body []byte, coding, proto string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", u, nil)
	must.Do(t, err)
	req.Header.Set("Accept-Encoding", "gzip, br")
	resp, err := transport.RoundTrip(req)
	must.Do(t, err)
	defer resp.Body.Close()
	var r io.Reader = resp.Body
	switch coding = resp.Header.Get("Content-Encoding"); coding {
	case "gzip":
		r, err = gzip.NewReader(r)
		must.True(t, err == nil, "%v", err)
	case "br":
		r = brotli.NewReader(r)
	}
	if body, err = io.ReadAll(r); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d: %v", u, resp.StatusCode, err)
	}
	return body, coding, resp.Proto
}

func countAnchors(body []byte) (n int) {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return n
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) == "a" {
				n++
			}
		}
	}
}
