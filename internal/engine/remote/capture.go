//go:build !core

package remote

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

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

// Response makes a response of a report, or the failure that there was instead, for the request of a lease that took
// from start to end. At most so many bytes of the body count. check returns an error for a type that is not wanted.
func (r *Report) Response(l *frontier.Lease, start, end time.Time, most int64,
	check func(status int, header http.Header) error) (*fetch.Response, error) {
	failure := &fetch.Error{
		Kind: r.Failure, Op: "request", URL: l.URL.String(), Sent: true, Start: start, End: end,
		Header: reportedHeader(r.Header, end), Err: errors.New("reported by the fetcher"),
	}
	last := &l.Head.Last
	switch {
	case r.Status == 0:
		return nil, failure
	case r.Status == http.StatusNotModified && last.ETag == "" && last.Modified == "":
		failure.Kind = fetch.KindBadResponse
		return nil, failure
	}
	if err := check(r.Status, failure.Header); err != nil && !l.Head.Sitemap {
		failure.Kind, failure.Err = fetch.KindTypeNotWanted, err
		return nil, failure
	}
	body := r.Body[:min(int64(len(r.Body)), most)]
	return &fetch.Response{
		Status: r.Status, Header: failure.Header, Body: spool.Of(body), Truncated: len(body) < len(r.Body),
		Start: start, Connected: start, FirstByte: start, End: end, WireBytes: int64(len(r.Body)),
	}, nil
}

// reportedHeader returns the fields of a reported header that a server can have sent. The body comes
// without encodings.
func reportedHeader(reported http.Header, end time.Time) http.Header {
	header := sent(reported)
	for _, name := range []string{"Content-Encoding", "Content-Length", "Transfer-Encoding", "Set-Cookie"} {
		header.Del(name)
	}
	httpfield.Settle(header, end)
	return header
}

// Extend moves the deadline of a lease, which has another line in the start ledger for it.
func (b *Book) Extend(l *Held, until time.Time, offset uint64) {
	l.Deadline, l.Ends, l.Offset, l.saved = until.Round(0), until, offset, false
	heap.Fix(&b.deadlines, l.index)
	b.unsaved = append(b.unsaved, savedLater{l, offset})
}
