package crawl

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/httpfield"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
)

// remoteResult is what a result has besides if its request was made by a fetcher.
type remoteResult struct {
	lease     *remoteLease
	report    *LeaseReport // nil: there is none
	committed chan<- error // told when the result is on disk; nil: nobody waits
}

// lend makes leases of what the dispatcher has given. Pages whose use is refused are not lent.
func (w *worker) lend(ctx context.Context, m *mailbox, given []*result) (leases []RemoteLease, err error) {
	for _, res := range given {
		x := res.remote.lease
		if w.refusesUse(res) {
			err = errors.Join(err, m.call(ctx, func(d *dispatcher) {
				if d.remote.out[x.id] == x { // else it has run out meanwhile
					d.complete(res)
				}
			}))
			continue
		}
		leases = append(leases, w.describe(&res.lease, x))
	}
	return leases, err
}

// describe returns what a fetcher is told of a lease.
func (w *worker) describe(l *frontier.Lease, x *remoteLease) RemoteLease {
	etag, modified := w.validators(l)
	most := w.maxBody(&l.Head)
	if most == 0 {
		most = w.o.Fetch.MaxBody
	}
	return RemoteLease{
		ID: x.id, URL: l.URL, Host: l.HostName, Address: l.Address, Header: w.client.PlainHeader(etag, modified),
		Depth: l.Head.Depth, Delay: l.Delay, MaxBody: min(most, MaxReportBody), Given: x.Given, Deadline: x.Deadline,
	}
}

// isValid reports whether a report is within its bounds.
func (r *LeaseReport) isValid() bool {
	if !isFetcherName(r.Fetcher) || r.ID == "" && r.URL.IsZero() || len(r.Body) > MaxReportBody ||
		len(r.Links) > MaxReportLinks {
		return false
	}
	size := 0
	for name, values := range r.Header {
		for _, value := range values {
			if size += len(name) + len(value) + 4; size > MaxReportHeader {
				return false
			}
		}
	}
	switch {
	case r.NotDone:
		return true
	case r.Status != 0:
		return r.Status >= 200 && r.Status <= 599 // an informational status is no response
	}
	return r.Failure.IsKnown()
}

// serveReport does the work of a report: that of a page lease behind its request. Whatever is in it
// costs its own URL at most.
func (w *worker) serveReport(res *result, r *LeaseReport) {
	defer res.end(nil)
	defer res.closeResponse()
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(res.ctx, res, cause, debug.Stack())
		}
	}()
	resp, err := w.responseOf(&res.lease, r)
	resp, failure, report := w.ended(res, res.lease.URL, resp, err)
	if failure != nil && report.Broken {
		report.Broken = false // the fetcher has made its request, and says what came of it
	}
	res.page.Report, res.page.Next = report, r.Next
	w.takePage(res.ctx, res, resp, failure)
}

// responseOf makes a response of a report, or the failure that there was instead.
func (w *worker) responseOf(l *frontier.Lease, r *LeaseReport) (*fetch.Response, error) {
	failure := &fetch.Error{
		Kind: r.Failure, Op: "request", URL: l.URL.String(), Sent: true, Start: r.Start, End: r.End,
		Header: reportedHeader(r.Header, r.End), Err: errors.New("reported by the fetcher"),
	}
	last := &l.Head.Last
	switch {
	case r.Status == 0:
		return nil, failure
	case r.Status == http.StatusNotModified && last.ETag == "" && last.Modified == "":
		failure.Kind = fetch.KindBadResponse
		return nil, failure
	}
	most := w.maxBody(&l.Head)
	if most == 0 {
		most = w.o.Fetch.MaxBody
	}
	body := r.Body[:min(int64(len(r.Body)), most)]
	return &fetch.Response{
		Status: r.Status, Header: failure.Header, Body: spool.Of(body), Truncated: len(body) < len(r.Body),
		Start: r.Start, Connected: r.Start, FirstByte: r.Start, End: r.End, WireBytes: int64(len(r.Body)),
	}, nil
}

// reportedHeader returns the fields of a reported header that a server can have sent. The body comes
// without encodings.
func reportedHeader(reported http.Header, end time.Time) http.Header {
	header := make(http.Header, len(reported))
	for name, values := range reported {
		name = http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
		case slices.Contains([]string{"Content-Encoding", "Content-Length", "Transfer-Encoding", "Set-Cookie"}, name):
		default:
			for _, value := range values {
				if httpguts.ValidHeaderFieldValue(value) {
					header[name] = append(header[name], strings.TrimSpace(value))
				}
			}
		}
	}
	httpfield.Settle(header, end)
	return header
}

// digestOf returns the digest of a body. Of a page whose body was not reported, the fetcher says it.
func (res *result) digestOf(body *spool.Content) (warc.Digest, error) {
	if res.hasBody() {
		return digest(body)
	}
	return res.remote.report.Digest, nil
}

// hasBody reports whether the body of a response is here.
func (res *result) hasBody() bool {
	return res.remote == nil || res.remote.report == nil || res.remote.report.HasBody
}

// takeReported takes the title and the links of a page whose body was not reported.
func (w *worker) takeReported(res *result, page *archive.Page, directives *extract.Directives) {
	l, r := &res.lease, res.remote.report
	doc := extract.Page{Title: strings.ToValidUTF8(r.Title[:min(len(r.Title), maxReportTitle)], "")}
	for _, text := range r.Links {
		if u, err := l.URL.Resolve(text); err == nil {
			doc.Links = append(doc.Links, extract.Link{URL: u})
		}
	}
	page.Title, page.Outlinks = doc.Title, len(doc.Links)
	w.keepText(res, &doc)
	if w.followsLinks(&l.Head, directives) {
		w.takeDocument(res, &doc)
	}
}

// maxReportTitle bounds a reported title, in bytes.
const maxReportTitle = 1000
