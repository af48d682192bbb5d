package remote

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// MaxCaptures bounds the captures of a report.
const MaxCaptures = 256

// Capture is a request that a fetcher made for a lease, with its response, for web archives: that for the page, or one
// that the page has caused.
type Capture struct {
	URL     weburl.URL
	Request http.Header // as sent
	Status  int
	Header  http.Header // of the response, as received
	Body    []byte      // decoded
	// OfReport means that Status, Header and Body are those of the report.
	OfReport bool
}

// isValid reports whether a capture is within its bounds.
func (c *Capture) isValid() bool {
	return !c.URL.IsZero() && headerSize(c.Request) <= MaxReportHeader && headerSize(c.Header) <= MaxReportHeader &&
		(c.OfReport || c.Status >= 200 && c.Status <= 599)
}

// Captured returns the capture of the page of a report; nil: it has none.
func (r *Report) Captured(page weburl.URL) *Capture {
	if i := slices.IndexFunc(r.Captures, func(c Capture) bool { return c.URL == page }); i >= 0 {
		return &r.Captures[i]
	}
	return nil
}

// Wire returns the exchange with the page of a report as HTTP/1.1 would have carried it, its body without encodings.
// resp is the response of the report. nil: the fetcher did not say.
func (r *Report) Wire(page weburl.URL, resp *fetch.Response) *fetch.Wire {
	c := r.Captured(page)
	if c == nil {
		return nil
	}
	whole := *c
	if c.OfReport {
		body, _ := resp.Body.Bytes() // of a report, they are in memory
		whole.Status, whole.Header, whole.Body = r.Status, r.Header, body
	}
	return &fetch.Wire{
		Request: whole.request(), Response: whole.response(), Plain: c.OfReport && !resp.Truncated,
		Truncated: c.OfReport && resp.Truncated,
	}
}

// Exchange returns the exchange of a capture that is not of the page.
func (c *Capture) Exchange() *archive.Exchange {
	return &archive.Exchange{URL: c.URL.String(), Request: c.request(), Response: c.response()}
}

// request returns the request, without credentials, so that no archive reveals them.
func (c *Capture) request() *spool.Content {
	header := sent(c.Request)
	for _, secret := range []string{"Host", "Authorization", "Cookie", "Proxy-Authorization"} {
		header.Del(secret)
	}
	b := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n", c.URL.RequestURI(), c.URL.HostPort())
	return spool.Of(append(fetch.AppendHeader(b, header), "\r\n"...))
}

// original is the prefix of fields that do not hold for a decoded body, as replay of web archives knows it.
const original = "X-Archive-Orig-"

// response returns the response, with a body in no encoding.
func (c *Capture) response() *spool.Content {
	header := sent(c.Header)
	for _, name := range []string{"Content-Encoding", "Content-Length", "Transfer-Encoding"} {
		if values := header.Values(name); len(values) > 0 {
			header[original+name] = values
		}
	}
	header.Del("Content-Encoding")
	header.Del("Transfer-Encoding")
	header.Set("Content-Length", fmt.Sprint(len(c.Body)))
	b := fmt.Appendf(nil, "HTTP/1.1 %03d %s\r\n", c.Status, http.StatusText(c.Status))
	b = append(fetch.AppendHeader(b, header), "\r\n"...)
	return spool.Of(append(b, c.Body...))
}

// sent returns the fields of a reported header that can have been sent.
func sent(reported http.Header) http.Header {
	header := make(http.Header, len(reported))
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		if !httpguts.ValidHeaderFieldName(name) {
			continue
		}
		for _, value := range reported[name] {
			if httpguts.ValidHeaderFieldValue(value) {
				header.Add(name, strings.TrimSpace(value))
			}
		}
	}
	return header
}

// headerSize returns the bytes of a header.
func headerSize(header http.Header) (size int) {
	for name, values := range header {
		for _, value := range values {
			size += len(name) + len(value) + 4
		}
	}
	return size
}
