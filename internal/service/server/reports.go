//go:build !core

package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

const (
	maxReport  = 8 << 20 // bytes of one report
	maxReports = 100     // that are worked on together
	// maxReporting bounds the requests with reports that are read at a time, and so the memory of
	// their bodies.
	maxReporting = 8
)

// Report is the result of a lease.
type Report struct {
	ID      remote.ID `json:"id,omitempty" maxLength:"64" doc:"of the lease; in the path of the request, or on each line"`
	Fetcher string    `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`

	NotDone bool    `json:"not_done,omitempty" doc:"gives the lease back: its URL goes to the head of its queue"`
	Sent    bool    `json:"sent,omitempty" doc:"of not_done: the request may have reached the server, so the host is charged"`
	Took    float64 `json:"took,omitempty" minimum:"0" maximum:"604800" doc:"seconds that the request took; absent: since the lease was given"`

	Status  int               `json:"status,omitempty" minimum:"200" maximum:"599" doc:"of the response; absent: there was none"`
	Error   string            `json:"error,omitempty" maxLength:"64" doc:"why there was no response, by the names of docs/ERRORS.md, such as connect_timeout"`
	Headers map[string]string `json:"headers,omitempty" doc:"of the response"`

	Body   *string  `json:"body,omitempty" doc:"as text; amble extracts its links"`
	Base64 *string  `json:"body_base64,omitempty" doc:"the body as it is, in base64, in place of body"`
	Links  []string `json:"links,omitempty" maxItems:"20000" doc:"in place of the body: the links of the page"`
	Title  string   `json:"title,omitempty" maxLength:"1000"`
	SHA256 string   `json:"sha256,omitempty" pattern:"^([0-9a-f]{64})?$" doc:"of the decoded body, in place of it"`

	Captures []Capture `json:"captures,omitempty" maxItems:"256" doc:"what web archives get: docs/FETCHERS.md"`
}

// Capture is a request of a fetcher, with its response, for web archives.
type Capture struct {
	URL            string            `json:"url" maxLength:"8192" doc:"that of the lease for the page itself"`
	RequestHeaders map[string]string `json:"request_headers" doc:"as they were sent"`

	Status  int               `json:"status,omitempty" minimum:"200" maximum:"599" doc:"absent: all of the report"`
	Headers map[string]string `json:"headers,omitempty" doc:"of the response"`
	Base64  string            `json:"body_base64,omitempty" doc:"the decoded body, in base64"`
}

// capture makes a capture of the API one of the crawl.
func (c *Capture) capture() (x remote.Capture, err error) {
	x = remote.Capture{Request: headerOf(c.RequestHeaders), Status: c.Status, Header: headerOf(c.Headers),
		OfReport: c.Status == 0}
	if x.URL, err = weburl.Parse(c.URL); err != nil {
		return x, errQuery{fmt.Errorf("captures: %w", err)}
	}
	if x.Body, err = base64.StdEncoding.DecodeString(c.Base64); err != nil {
		return x, errQuery{fmt.Errorf("captures: body_base64 of %s: %w", c.URL, err)}
	}
	return x, nil
}

// headerOf returns a header with one value for each name.
func headerOf(fields map[string]string) http.Header {
	header := make(http.Header, len(fields))
	for name, value := range fields {
		header.Set(name, value)
	}
	return header
}

// report makes a report of the API one of the crawl.
func (r *Report) report() (c remote.Report, err error) {
	c = remote.Report{
		ID: r.ID, Fetcher: r.Fetcher, NotDone: r.NotDone, Sent: r.Sent, Status: r.Status,
		Header: headerOf(r.Headers), Links: r.Links, Title: r.Title, Took: seconds(r.Took),
	}
	if r.ID == "" || r.Took < 0 {
		return c, errQuery{errors.New("a report needs the id of its lease, and a time that is not negative")}
	}
	for i := range r.Captures {
		x, err := r.Captures[i].capture()
		if err != nil {
			return c, err
		}
		c.Captures = append(c.Captures, x)
	}
	switch {
	case r.Body != nil:
		c.Body, c.HasBody = []byte(*r.Body), true
	case r.Base64 != nil:
		if c.Body, err = base64.StdEncoding.DecodeString(*r.Base64); err != nil {
			return c, errQuery{fmt.Errorf("body_base64: %w", err)}
		}
		c.HasBody = true
	case r.SHA256 != "":
		if n, err := hex.Decode(c.Digest[:], []byte(r.SHA256)[:min(len(r.SHA256), 64)]); err != nil ||
			n != len(c.Digest) {
			return c, errQuery{errors.New("sha256 should have 64 hexadecimal digits")}
		}
	}
	if r.Error != "" {
		known := false
		if c.Failure, known = fetch.ParseKind(r.Error); !known {
			return c, errQuery{fmt.Errorf("error is %q, which is none of the names of docs/ERRORS.md", r.Error)}
		}
	}
	return c, nil
}

// seconds converts a number of seconds; more than a week is a week.
func seconds(s float64) time.Duration {
	const week = 7 * 24 * 3600
	return time.Duration(min(max(s, 0), week) * float64(time.Second))
}

// oneReport is the request with one report.
type oneReport struct {
	ID   string `path:"id" maxLength:"64"`
	Body Report
}

// ReportResult says what became of a report. It is one line of the response to a list.
type ReportResult struct {
	ID     remote.ID `json:"id"`
	Result string    `json:"result" enum:"accepted,late,foreign,unknown,invalid"`
	Reason string    `json:"reason,omitempty"`
}

// limitReporting bounds the requests with reports that are read at a time.
func (l *lending) limitReporting(c huma.Context, next func(huma.Context)) {
	select {
	case l.reporting <- struct{}{}:
		defer func() { <-l.reporting }()
		next(c)
	case <-c.Context().Done():
	}
}

func (l *lending) reportsAPI(api huma.API) {
	one := l.operation("POST", "/leases/{id}", "leases-report", "Report the result of a lease",
		append(bodyErrors(), http.StatusNotFound, http.StatusConflict)...)
	one.Description = "The result is on disk when the response is sent. A report that comes late, twice or for " +
		"another fetcher's lease changes nothing, and is an error. With body or body_base64, amble extracts the links."
	one.MaxBodyBytes, one.Middlewares = maxReport, append(one.Middlewares, l.limitReporting)
	Handle(api, one, func(ctx context.Context, in *oneReport) (*Object[ReportResult], error) {
		in.Body.ID = remote.ID(in.ID)
		r, err := in.Body.report()
		if err != nil {
			return nil, err
		}
		results, err := l.s.crawl(ctx).Report(ctx, []remote.Report{r})
		if err == nil {
			err = reportProblem(results[0])
		}
		if err != nil {
			return nil, err
		}
		return answer(ReportResult{ID: r.ID, Result: results[0].String()}, nil)
	})
	list := streams[ReportResult](api,
		l.operation("POST", "/reports", "leases-report-all", "Report the results of leases",
			http.StatusBadRequest))
	list.Description = "The body has one report a line, each as for one lease and with its id. Each line of the " +
		"response is the result of the report on the same line, and on disk."
	min := 1
	lines := &huma.Schema{Type: huma.TypeString, MinLength: &min}
	list.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{JSONLines: {Schema: lines}}}
	list.Middlewares = append(list.Middlewares, l.limitReporting)
	Handle(api, list, func(context.Context, *struct{}) (*huma.StreamResponse, error) {
		return l.s.stream(l.takeReports), nil
	})
}

// reportProblem is the error of a report that changed nothing; nil: it was accepted.
func reportProblem(r remote.Result) error {
	switch r {
	case remote.Late:
		return huma.Error409Conflict("the lease has run out, or was reported before")
	case remote.Foreign:
		return huma.Error403Forbidden("the lease is another fetcher's, or this fetcher is cut off")
	case remote.Unknown:
		return huma.Error404NotFound("there is no such lease")
	case remote.Invalid:
		return huma.Error422UnprocessableEntity("the report is out of bounds")
	}
	return nil
}

// takeReports takes in a list of reports, a group at a time.
func (l *lending) takeReports(t *Stream) error {
	if t.r.ContentLength == 0 {
		return huma.Error400BadRequest("the reports are missing: send them as the body of the request")
	}
	_ = t.control.EnableFullDuplex() // HTTP/1: results are written while the list is read
	body := &listBody{body: t.r.Body, control: t.control, now: l.s.o.Now}
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, streamBuffer), maxReport)
	g := reportGroup{server: l.s, stream: t}
	for lines.Scan() {
		if err := g.add(lines.Bytes()); err != nil {
			return err
		}
		if len(g.results) >= maxReports || g.size >= maxReport {
			if err := g.send(); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil && err != io.EOF {
		return errQuery{fmt.Errorf("read the reports: %w", err)}
	}
	return g.send()
}

// reportGroup is reports that are committed together.
type reportGroup struct {
	server  *Server
	stream  *Stream
	results []ReportResult
	reports []remote.Report
	of      []int // index in results of each report
	size    int   // bytes
}

// add takes in a line.
func (g *reportGroup) add(line []byte) error {
	if len(strings.TrimSpace(string(line[:min(len(line), 1)]))) == 0 && len(line) < 2 {
		return nil // an empty line
	}
	g.size += len(line)
	var in Report
	err := json.Unmarshal(line, &in)
	var r remote.Report
	if err == nil {
		r, err = in.report()
	}
	g.results = append(g.results, ReportResult{ID: in.ID, Result: remote.Invalid.String()})
	if err != nil {
		g.results[len(g.results)-1].Reason = err.Error()
		return nil
	}
	g.of = append(g.of, len(g.results)-1)
	g.reports = append(g.reports, r)
	return nil
}

// send has the reports committed, and writes their results.
func (g *reportGroup) send() error {
	results, err := g.server.crawl(g.stream.r.Context()).Report(g.stream.r.Context(), g.reports)
	if err != nil {
		return err
	}
	for i, r := range results {
		g.results[g.of[i]].Result = r.String()
	}
	for i := range g.results {
		if err := g.stream.Lines.Write(&g.results[i]); err != nil {
			return err
		}
	}
	g.results, g.reports, g.of, g.size = nil, nil, nil, 0
	return g.stream.flush()
}
