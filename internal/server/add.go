package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/urllist"
)

// AddReport reports the progress of adding a list of URLs. It is one line of the response; the last
// one has Done or Error.
type AddReport struct {
	Lines int `json:"lines"` // lines read
	crawl.Added
	Bad      int       `json:"bad"`                // lines without a URL
	Problems []BadLine `json:"problems,omitempty"` // the first bad lines since the last report
	Answers  []Answer  `json:"answers,omitempty"`  // one for each line since the last report, if the request wants them
	Waiting  string    `json:"waiting,omitempty"`  // why no URL is added now: the crawl is stalled until there is room
	Done     bool      `json:"done,omitempty"`     // the whole list was added
	Error    string    `json:"error,omitempty"`    // why the list was not read to its end
}

// Answer is the result of one line.
type Answer struct {
	Line   int    `json:"line"`
	URL    string `json:"url,omitempty"` // in its canonical form
	Result string `json:"result" enum:"added,known,outside,refused,again,bad"`
	Reason string `json:"reason,omitempty"` // why the line is bad
}

// addQuery has the parameters of the request.
type addQuery struct {
	Each  bool `query:"each" doc:"also report the result of each line"`
	Again bool `query:"again" doc:"put known URLs that failed, were denied or excluded back into their queues"`
}

// BadLine is one line of a list that holds no URL.
type BadLine struct {
	Line   int    `json:"line"`
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// maxProblems is how many bad lines one report lists.
const maxProblems = 20

func (s *Server) addAPI(api huma.API) {
	op := streams[AddReport](api, operation("POST", "/urls", "urls-add", "Add URLs, a list of any length",
		http.StatusBadRequest, http.StatusConflict))
	op.Description = "The body has one URL a line, or one JSON object a line with url and optionally depth and " +
		"priority; it may be compressed with gzip or zstd. " +
		"Reports are sent while the list is read, each when the URLs it counts are on disk: after at most " +
		strconv.Itoa(crawl.MaxAdditions) + " URLs. The last one has done or error. " +
		"While the crawl is stalled because there is no room, reports say so; the list continues when there is room."
	one := 1
	list := &huma.Schema{Type: huma.TypeString, MinLength: &one}
	op.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{jsonLines: {Schema: list}, "text/plain": {Schema: list}}}
	handle(api, op, func(ctx context.Context, q *addQuery) (*huma.StreamResponse, error) {
		return s.stream(func(t *stream) error {
			if t.r.ContentLength == 0 {
				return huma.NewError(http.StatusBadRequest, "the list is missing: send it as the body of the request")
			}
			return s.addURLs(ctx, t, q)
		}), nil
	})
}

// addURLs reads a list, adds it to the crawl in groups, and reports when each group is on disk. It
// reads the next group only then, so that a sender is no faster than the disk.
func (s *Server) addURLs(ctx context.Context, t *stream, q *addQuery) error {
	_ = t.control.EnableFullDuplex() // HTTP/1: reports are written while the list is read
	list, err := urllist.NewReader(&listBody{body: t.r.Body, control: t.control, now: s.o.Now})
	if err != nil {
		return errQuery{err}
	}
	defer list.Close()
	a := adding{server: s, stream: t, list: list, each: q.Each, again: q.Again}
	for !a.report.Done && err == nil {
		if err = a.next(ctx); err == nil {
			err = errors.Join(t.Lines.Write(&a.report), t.flush())
		}
	}
	if err != nil && t.begun {
		a.report.Error = err.Error()
		err = t.Lines.Write(&a.report)
	}
	return err
}

// adding is one list that is being added to the crawl.
type adding struct {
	server *Server
	stream *stream
	list   *urllist.Reader
	each   bool
	again  bool
	group  []crawl.Addition
	lines  []int // of the group
	report AddReport
}

// next reads one group.
func (a *adding) next(ctx context.Context) error {
	a.group, a.lines, a.report.Problems, a.report.Answers = a.group[:0], a.lines[:0], nil, nil
	var err error
	for err == nil && len(a.group) < crawl.MaxAdditions && len(a.report.Answers) < crawl.MaxAdditions {
		err = a.read()
	}
	a.report.Lines = a.list.Lines()
	sum, failed := a.add(ctx)
	a.report.Added = a.report.Plus(sum)
	if failed != nil {
		return failed
	}
	a.answer()
	if err == io.EOF {
		a.report.Done = true
		return nil
	}
	return err
}

// waitingReports is the interval of reports while the crawl is stalled.
const waitingReports = time.Second

// add adds the group to the crawl. While the crawl is stalled, it sends reports, which also detect
// that the client has gone.
func (a *adding) add(ctx context.Context) (sum crawl.Added, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		sum, err = a.server.crawl.Add(ctx, a.group)
	}()
	tick := time.NewTicker(waitingReports)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return sum, err
		case <-tick.C:
			if a.reportWaiting() != nil {
				cancel()
			}
		}
	}
}

// reportWaiting reports why no URL is added, if the crawl is stalled.
func (a *adding) reportWaiting() error {
	s := a.server.crawl.Status()
	if s.State != "stalled" {
		return nil
	}
	report := AddReport{Lines: a.report.Lines, Added: a.report.Added, Bad: a.report.Bad, Waiting: s.Reason}
	return errors.Join(a.stream.Lines.Write(&report), a.stream.flush())
}

// answer reports the result of each line of the group.
func (a *adding) answer() {
	if !a.each {
		return
	}
	for i := range a.group {
		g := &a.group[i]
		a.report.Answers = append(a.report.Answers,
			Answer{Line: a.lines[i], URL: g.URL.String(), Result: g.Result.String()})
	}
	slices.SortFunc(a.report.Answers, func(a, b Answer) int { return a.Line - b.Line })
}

// read reads one line.
func (a *adding) read() error {
	item, err := a.list.Next()
	var bad *urllist.BadLine
	switch {
	case errors.As(err, &bad):
		a.report.Bad++
		if len(a.report.Problems) < maxProblems {
			a.report.Problems = append(a.report.Problems, BadLine{bad.Line, bad.Text, bad.Reason})
		}
		if a.each {
			a.report.Answers = append(a.report.Answers, Answer{Line: bad.Line, Result: "bad", Reason: bad.Reason})
		}
		return nil
	case err != nil:
		return err
	}
	a.lines = append(a.lines, a.list.Lines())
	a.group = append(a.group, crawl.Addition{URL: item.URL, Depth: item.Depth, Priority: item.Priority, Again: a.again})
	return nil
}
