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

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
)

// Leases is what fetchers outside of this process need of a crawl; see crawl.Engine.
type Leases interface {
	Lease(context.Context, crawl.LeaseRequest) ([]crawl.RemoteLease, error)
	Extend(ctx context.Context, fetcher string, ids []crawl.LeaseID, visibility time.Duration) ([]time.Time, error)
	Report(context.Context, []crawl.LeaseReport) ([]crawl.ReportResult, error)
	Fetchers(context.Context) ([]crawl.Fetcher, error)
	CutOff(ctx context.Context, fetcher string) error
	Admit(ctx context.Context, fetcher string) error
	Check(ctx context.Context, urls []weburl.URL, take bool) ([]crawl.URLCheck, error)
}

const (
	maxReport  = 8 << 20 // bytes of one report
	maxReports = 100     // that are worked on together
	// maxReporting bounds the requests with reports that are read at a time, and so the memory of
	// their bodies.
	maxReporting = 8
)

// leaseRequest is the request for leases.
type leaseRequest struct {
	Body struct {
		Fetcher string  `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$" doc:"the name of the fetcher"`
		N       int     `json:"n,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"leases at most"`
		Wait    float64 `json:"wait,omitempty" minimum:"0" maximum:"300" doc:"seconds to wait for the first one"`
		Seconds float64 `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"60" doc:"until the deadline"`
		Host    string  `json:"host,omitempty" maxLength:"512" doc:"only URLs of this host"`
		PerHost int     `json:"per_host,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"requests to a host in flight at most, where no delay is in force and politeness.per_host allows it"`
		Hosts   int     `json:"hosts,omitempty" minimum:"1" maximum:"1000" doc:"hosts at most; absent: any number"`
	}
}

// Lease is the permission for one request. It is one line of the response.
type Lease struct {
	ID       crawl.LeaseID     `json:"id"`
	URL      string            `json:"url"`
	Host     string            `json:"host"`
	Address  string            `json:"address,omitempty"` // the only one to dial, if the fetcher can choose
	Headers  map[string]string `json:"headers"`           // to send
	Depth    int               `json:"depth"`
	Delay    float64           `json:"delay_seconds"` // in force, from the end of this request to the next
	MaxBytes int64             `json:"max_bytes"`     // of the decoded body that are of use
	Deadline time.Time         `json:"deadline"`
	Seconds  float64           `json:"seconds"` // until the deadline
}

func newLease(l *crawl.RemoteLease, now time.Time) Lease {
	lease := Lease{
		ID: l.ID, URL: l.URL.String(), Host: l.Host, Headers: make(map[string]string, len(l.Header)),
		Depth: int(l.Depth), Delay: l.Delay.Seconds(), MaxBytes: l.MaxBody, Deadline: l.Deadline.UTC(),
		Seconds: max(l.Deadline.Sub(now), 0).Seconds(),
	}
	if l.Address.IsValid() {
		lease.Address = l.Address.String()
	}
	for name, values := range l.Header {
		lease.Headers[name] = strings.Join(values, ", ")
	}
	return lease
}

// leaseExtension is the request for longer leases.
type leaseExtension struct {
	Body struct {
		Fetcher string          `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`
		IDs     []crawl.LeaseID `json:"ids" minItems:"1" maxItems:"1000" nullable:"false"`
		Seconds float64         `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"60" doc:"from now until the deadline"`
	}
}

// oneExtension is the request for a longer lease.
type oneExtension struct {
	ID   crawl.LeaseID `path:"id" maxLength:"64"`
	Body struct {
		Fetcher string  `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`
		Seconds float64 `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"60" doc:"from now until the deadline"`
	}
}

// extended is the new deadline of a lease.
type extended struct {
	ID       crawl.LeaseID `json:"id"`
	Deadline time.Time     `json:"deadline,omitzero" doc:"absent: the lease is not out, or not this fetcher's"`
}

// extensions are the new deadlines.
type extensions struct {
	Leases []extended `json:"leases"`
}

// Report is the result of a lease.
type Report struct {
	ID      crawl.LeaseID `json:"id,omitempty" maxLength:"64" doc:"of the lease; in the path of the request, or on each line"`
	Fetcher string        `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`

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
}

// report makes a report of the API one of the crawl.
func (r *Report) report() (c crawl.LeaseReport, err error) {
	c = crawl.LeaseReport{
		ID: r.ID, Fetcher: r.Fetcher, NotDone: r.NotDone, Sent: r.Sent, Status: r.Status,
		Header: make(http.Header, len(r.Headers)), Links: r.Links, Title: r.Title,
		Took: seconds(r.Took),
	}
	if r.ID == "" || r.Took < 0 {
		return c, errQuery{errors.New("a report needs the id of its lease, and a time that is not negative")}
	}
	for name, value := range r.Headers {
		c.Header.Set(name, value)
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
		if n, err := hex.Decode(c.Digest[:], []byte(r.SHA256)[:min(len(r.SHA256), 64)]); err != nil || n != len(c.Digest) {
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
	ID     crawl.LeaseID `json:"id"`
	Result string        `json:"result" enum:"accepted,late,foreign,unknown,invalid"`
	Reason string        `json:"reason,omitempty"`
}

// fetcherList is all fetchers.
type fetcherList struct {
	Fetchers []crawl.Fetcher `json:"fetchers"`
}

// FetcherPath names a fetcher. It is exported because huma reads only fields of exported types.
type FetcherPath struct {
	Name string `path:"name" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`
}

// fetcherDone is the result of a command for a fetcher.
type fetcherDone struct {
	Fetcher string `json:"fetcher"`
	CutOff  bool   `json:"cut_off"`
}

// checkRequest is the request for checks.
type checkRequest struct {
	Body struct {
		URLs []string `json:"urls" minItems:"1" maxItems:"1000" nullable:"false"`
		Take bool     `json:"take,omitempty" doc:"the requests that may be made follow at once: their hosts are charged"`
	}
}

// checkList has one result for each URL.
type checkList struct {
	Results []crawl.URLCheck `json:"results"`
}

func (s *Server) leasesAPI(api huma.API) {
	lend := streams[Lease](api, operation("POST", "/leases", "leases-take", "Take leases of pages",
		append(bodyErrors(), http.StatusNotFound)...))
	lend.Description = "Each line of the response is the permission for one GET request that follows no redirects and " +
		"ends before the deadline. No other request to the host begins until the lease is reported or its deadline " +
		"has passed. Without a lease that is due the request waits. The response may have no line."
	handle(api, lend, func(_ context.Context, in *leaseRequest) (*huma.StreamResponse, error) {
		return s.stream(func(t *stream) error { return s.lend(t, in) }), nil
	})
	extend := operation("PATCH", "/leases/{id}", "leases-extend", "Extend a lease", append(bodyErrors(), 404)...)
	handle(api, extend, func(ctx context.Context, in *oneExtension) (*object[extended], error) {
		at, err := s.crawl(ctx).Extend(ctx, in.Body.Fetcher, []crawl.LeaseID{in.ID}, seconds(in.Body.Seconds))
		if err == nil && at[0].IsZero() {
			err = huma.Error404NotFound("the lease is not out, or not this fetcher's")
		}
		if err != nil {
			return nil, err
		}
		return answer(extended{in.ID, at[0].UTC()}, nil)
	})
	all := operation("PATCH", "/leases", "leases-extend-all", "Extend leases", bodyErrors()...)
	handle(api, all, func(ctx context.Context, in *leaseExtension) (*object[extensions], error) {
		at, err := s.crawl(ctx).Extend(ctx, in.Body.Fetcher, in.Body.IDs, seconds(in.Body.Seconds))
		if err != nil {
			return nil, err
		}
		out := extensions{Leases: make([]extended, len(at))}
		for i := range at {
			if out.Leases[i].ID = in.Body.IDs[i]; !at[i].IsZero() {
				out.Leases[i].Deadline = at[i].UTC()
			}
		}
		return answer(out, nil)
	})
	s.reportsAPI(api)
	s.fetchersAPI(api)
	check := operation("POST", "/check", "check-urls", "Check whether URLs may be requested now", bodyErrors()...)
	check.Description = "By the scope, by the robots.txt in force, and by the delay of their hosts. For requests that " +
		"a page causes, such as those of a browser for images on other hosts."
	handle(api, check, func(ctx context.Context, in *checkRequest) (*object[checkList], error) {
		urls := make([]weburl.URL, len(in.Body.URLs))
		for i, text := range in.Body.URLs {
			u, err := weburl.Parse(text)
			if err != nil {
				return nil, errQuery{fmt.Errorf("urls[%d]: %w", i, err)}
			}
			urls[i] = u
		}
		list, err := s.crawl(ctx).Check(ctx, urls, in.Body.Take)
		return answer(checkList{list}, err)
	})
}

// lend writes the leases that a fetcher gets. What cannot be written is given back.
func (s *Server) lend(t *stream, in *leaseRequest) error {
	b := &in.Body
	leases, err := s.crawl(t.r.Context()).Lease(t.r.Context(), crawl.LeaseRequest{
		Fetcher: b.Fetcher, N: b.N, Wait: seconds(b.Wait), Visibility: seconds(b.Seconds), Host: b.Host,
		PerHost: b.PerHost, Hosts: b.Hosts,
	})
	if err != nil || len(leases) == 0 {
		return err
	}
	for i := range leases {
		l := newLease(&leases[i], s.o.Now())
		err = errors.Join(err, t.Lines.Write(&l))
	}
	if err = errors.Join(err, t.flush()); err == nil {
		return nil
	}
	back := make([]crawl.LeaseReport, len(leases))
	for i := range leases {
		back[i] = crawl.LeaseReport{Fetcher: b.Fetcher, ID: leases[i].ID, NotDone: true}
	}
	_, again := s.crawl(t.r.Context()).Report(context.WithoutCancel(t.r.Context()), back)
	return errors.Join(err, again)
}

// limitReporting bounds the requests with reports that are read at a time.
func (s *Server) limitReporting(c huma.Context, next func(huma.Context)) {
	select {
	case s.reporting <- struct{}{}:
		defer func() { <-s.reporting }()
		next(c)
	case <-c.Context().Done():
	}
}

func (s *Server) reportsAPI(api huma.API) {
	one := operation("POST", "/leases/{id}", "leases-report", "Report the result of a lease",
		append(bodyErrors(), http.StatusNotFound, http.StatusConflict)...)
	one.Description = "The result is on disk when the response is sent. A report that comes late, twice or for " +
		"another fetcher's lease changes nothing, and is an error. With body or body_base64, amble extracts the links."
	one.MaxBodyBytes, one.Middlewares = maxReport, huma.Middlewares{s.limitReporting}
	handle(api, one, func(ctx context.Context, in *oneReport) (*object[ReportResult], error) {
		in.Body.ID = crawl.LeaseID(in.ID)
		r, err := in.Body.report()
		if err != nil {
			return nil, err
		}
		results, err := s.crawl(ctx).Report(ctx, []crawl.LeaseReport{r})
		if err == nil {
			err = reportProblem(results[0])
		}
		if err != nil {
			return nil, err
		}
		return answer(ReportResult{ID: r.ID, Result: results[0].String()}, nil)
	})
	list := streams[ReportResult](api, operation("POST", "/reports", "leases-report-all", "Report the results of leases",
		http.StatusBadRequest))
	list.Description = "The body has one report a line, each as for one lease and with its id. Each line of the " +
		"response is the result of the report on the same line, and on disk."
	min := 1
	lines := &huma.Schema{Type: huma.TypeString, MinLength: &min}
	list.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{jsonLines: {Schema: lines}}}
	list.Middlewares = huma.Middlewares{s.limitReporting}
	handle(api, list, func(context.Context, *struct{}) (*huma.StreamResponse, error) {
		return s.stream(s.takeReports), nil
	})
}

// reportProblem is the error of a report that changed nothing; nil: it was accepted.
func reportProblem(r crawl.ReportResult) error {
	switch r {
	case crawl.Late:
		return huma.Error409Conflict("the lease has run out, or was reported before")
	case crawl.Foreign:
		return huma.Error403Forbidden("the lease is another fetcher's, or this fetcher is cut off")
	case crawl.Unknown:
		return huma.Error404NotFound("there is no such lease")
	case crawl.Invalid:
		return huma.Error422UnprocessableEntity("the report is out of bounds")
	}
	return nil
}

// takeReports takes in a list of reports, a group at a time.
func (s *Server) takeReports(t *stream) error {
	if t.r.ContentLength == 0 {
		return huma.Error400BadRequest("the reports are missing: send them as the body of the request")
	}
	_ = t.control.EnableFullDuplex() // HTTP/1: results are written while the list is read
	body := &listBody{body: t.r.Body, control: t.control, now: s.o.Now}
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, streamBuffer), maxReport)
	g := reportGroup{server: s, stream: t}
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
	stream  *stream
	results []ReportResult
	reports []crawl.LeaseReport
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
	var r crawl.LeaseReport
	if err == nil {
		r, err = in.report()
	}
	g.results = append(g.results, ReportResult{ID: in.ID, Result: crawl.Invalid.String()})
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

func (s *Server) fetchersAPI(api huma.API) {
	handle(api, operation("GET", "/fetchers", "fetchers-list", "The fetchers of this run, and what they hold"),
		func(ctx context.Context, _ *struct{}) (*object[fetcherList], error) {
			list, err := s.crawl(ctx).Fetchers(ctx)
			return answer(fetcherList{list}, err)
		})
	cutOff := operation("DELETE", "/fetchers/{name}", "fetchers-cut-off", "Cut a fetcher off", http.StatusNotFound)
	cutOff.Description = "Its requests and reports are refused from now on, also after a restart. Its leases run out at " +
		"their deadlines, since its requests may still be under way."
	handle(api, cutOff, func(ctx context.Context, in *FetcherPath) (*object[fetcherDone], error) {
		return answer(fetcherDone{in.Name, true}, s.crawl(ctx).CutOff(ctx, in.Name))
	})
	admit := operation("POST", "/fetchers/{name}", "fetchers-admit", "Admit a fetcher that is cut off",
		http.StatusNotFound)
	handle(api, admit, func(ctx context.Context, in *FetcherPath) (*object[fetcherDone], error) {
		return answer(fetcherDone{in.Name, false}, s.crawl(ctx).Admit(ctx, in.Name))
	})
}

// Fetchers is [crawl.Engine.Fetchers] of the running crawl.
func (c *Client) Fetchers(ctx context.Context) ([]crawl.Fetcher, error) {
	var list fetcherList
	err := c.Command(ctx, http.MethodGet, "/fetchers", nil, &list)
	return list.Fetchers, err
}

// SetCutOff is [crawl.Engine.CutOff] or [crawl.Engine.Admit] of the running crawl.
func (c *Client) SetCutOff(ctx context.Context, fetcher string, on bool) error {
	method := http.MethodPost
	if on {
		method = http.MethodDelete
	}
	return c.Command(ctx, method, "/fetchers/"+fetcher, nil, nil)
}
