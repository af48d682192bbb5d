//go:build !core

package work

import (
	"cmp"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// RemoteResult is what a result has besides if its request was made by a fetcher.
type RemoteResult struct {
	Lease  *remote.Held
	Report *remote.Report // nil: there is none
	Start  time.Time      // of the request, with a report
	End    time.Time      // when the report came
}

// Fetcher returns the name of the fetcher; empty: a worker made the request.
func (r *RemoteResult) Fetcher() string {
	if r == nil {
		return ""
	}
	return r.Lease.Fetcher
}

// Describe adds to the record of the request what its lease says of it.
func (r *RemoteResult) Describe(q *requestlog.Request) {
	if r != nil {
		r.Lease.Describe(q)
	}
}

// Describe returns what a fetcher is told of a lease.
func (w *Worker) Describe(l *frontier.Lease, x *remote.Held, bare bool) remote.Lease {
	most := cmp.Or(w.maxBody(&l.Head), w.o.Fetch.MaxBody)
	r := remote.Lease{
		ID: remote.ID(x.ID), URL: l.URL, Host: l.HostName, Key: cmp.Or(x.Key, l.HostName),
		Address: l.Address, Depth: l.Head.Depth, Delay: l.Delay,
		MaxBody: min(most, remote.MaxReportBody), Given: x.Given, Deadline: x.Deadline,
	}
	if !bare {
		r.Header = w.client.PlainHeader(w.requestOf(l))
	}
	return r
}

// OutputLost encodes the line of a page whose lease has run out, if that was its last attempt.
func (ar *archiving) OutputLost(res *Result) {
	l, o := &res.Lease, &res.Page.Outcome
	if _, again := ar.o.Frontier.Attempted(&l.Head, o.State); again || ar.o.Archive.IsNone() {
		return
	}
	item, err := ar.encoder.Encode(&archive.Visit{Page: &archive.Page{
		URL: l.URL.String(), Depth: int(l.Head.Depth), Via: ar.via(&l.Head), Attempts: int(l.Head.Last.Attempts) + 1,
		FetchedAt: res.Request.Start, Reason: inspect.ReasonName(o.Reason), Note: o.Note,
		Error: "the lease of the fetcher " + o.Note + " ran out without a report",
	}})
	if err != nil {
		ar.log.Error("cannot encode for the output", "url", l.URL.String(), "error", err)
		return
	}
	res.Item = item
}

// digestOf returns the digest of a body. Of a page whose body was not reported, the fetcher says it.
func (res *Result) digestOf(body *spool.Content) (digest.Digest, error) {
	if res.hasBody() {
		return bodyDigest(body)
	}
	return res.Remote.Report.Digest, nil
}

// hasBody reports whether the body of a response is here.
func (res *Result) hasBody() bool {
	return res.Remote == nil || res.Remote.Report == nil || res.Remote.Report.HasBody
}

// takeReported takes the title and the links of a page whose body was not reported.
func (rd *reading) takeReported(res *Result, page *archive.Page, directives *extract.Directives) {
	l, r := &res.Lease, res.Remote.Report
	doc := extract.Page{Title: strings.ToValidUTF8(r.Title[:min(len(r.Title), maxReportTitle)], "")}
	for _, text := range r.Links {
		if u, err := l.URL.Resolve(text); err == nil {
			doc.Links = append(doc.Links, extract.Link{URL: u})
		}
	}
	page.Title, page.Outlinks = doc.Title, len(doc.Links)
	rd.keepText(res, &doc)
	rd.takeDocument(res, &doc, directives)
}

// maxReportTitle bounds a reported title, in bytes.
const maxReportTitle = 1000
