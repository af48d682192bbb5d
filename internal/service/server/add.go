package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/urllist"
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

func addAPI(s *Server, api huma.API) {
	op := streams[AddReport](api, Operation("POST", "/urls", "urls-add", "Add URLs, a list of any length",
		http.StatusBadRequest, http.StatusConflict))
	op.Description = "The body has one URL a line, or one JSON object a line with url and optionally depth and " +
		"priority; it may be compressed with gzip or zstd. " +
		"The URLs of a long list are committed in the order of their hosts, when the list ends, makes a pause of a " +
		"second, or was read for ten seconds. Reports are sent each second. They count the URLs that are on disk. " +
		"The last one has done or error. With each=true, the results of lines are in the order of the lines. " +
		"While the crawl is stalled because there is no room, reports say so; the list continues when there is room."
	one := 1
	list := &huma.Schema{Type: huma.TypeString, MinLength: &one}
	op.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{JSONLines: {Schema: list}, "text/plain": {Schema: list}}}
	Handle(api, op, func(ctx context.Context, q *addQuery) (*huma.StreamResponse, error) {
		return s.stream(func(t *Stream) error {
			if t.r.ContentLength == 0 {
				return huma.NewError(http.StatusBadRequest, "the list is missing: send it as the body of the request")
			}
			return s.addURLs(ctx, t, q)
		}), nil
	})
}

// addURLs reads a list and adds it to the crawl, a window at a time. It reads on only after the
// commit of a window, so that a sender is no faster than the disk.
func (s *Server) addURLs(ctx context.Context, t *Stream, q *addQuery) error {
	_ = t.control.EnableFullDuplex() // HTTP/1: reports are written while the list is read
	body := &listBody{body: t.r.Body, control: t.control, now: s.o.Now}
	list, err := urllist.NewReader(body)
	if err != nil {
		return errQuery{err}
	}
	defer list.Close()
	to, err := s.newImport(ctx, crawl.ImportOptions{Results: q.Each}, q.Again)
	if err != nil {
		return err
	}
	a := adding{server: s, stream: t, to: to, each: q.Each, again: q.Again}
	lines := readLines(list)
	err = errors.Join(a.run(ctx, lines), to.Close())
	lines.stop(body)
	if err != nil && t.begun {
		a.report.Error = err.Error()
		err = t.Lines.Write(&a.report)
	}
	return err
}

// newImport begins to import a list.
func (s *Server) newImport(ctx context.Context, o crawl.ImportOptions, again bool) (crawl.Import, error) {
	if d := s.divided(ctx); d != nil {
		return d.NewImport(o, again), nil
	}
	return s.crawl(ctx).NewImport(o)
}

// adding is one list that is being added to the crawl.
type adding struct {
	server *Server
	stream *Stream
	to     crawl.Import
	each   bool
	again  bool

	report  AddReport
	answers []Answer // of the window, if the client wants them
	text    int      // bytes of their URLs
	added   []int    // indexes of those whose result the crawl decides
}

const (
	// reportEvery is the interval of reports while nothing else makes one. A list that makes such a
	// pause is committed.
	reportEvery = time.Second
	// maxAnswers and maxAnswerText bound the answers of a window.
	maxAnswers    = 100_000
	maxAnswerText = 16 << 20
	// answersPerReport is how many answers one report has.
	answersPerReport = 5_000
)

// run adds the list.
func (a *adding) run(ctx context.Context, lines *lineReader) error {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	paused := false
	for {
		select {
		case group, more := <-lines.groups:
			if !more {
				a.report.Lines = lines.read
				return a.end(ctx, lines.err)
			}
			paused = false
			if err := a.take(ctx, group); err != nil {
				return err
			}
		case <-tick.C:
			if paused && (a.to.Gathered() > 0 || len(a.answers) > 0) {
				if err := a.commit(ctx); err != nil {
					return err
				}
			}
			if err := a.write(); err != nil {
				return err
			}
			paused = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end adds what was read last. The list ended with an error, io.EOF at its end.
func (a *adding) end(ctx context.Context, err error) error {
	if failed := a.commit(ctx); failed != nil {
		return failed
	}
	if err != io.EOF {
		return err
	}
	a.report.Done = true
	return a.write()
}

// take adds lines to the window, and commits it if it is full.
func (a *adding) take(ctx context.Context, lines []listLine) error {
	for i := range lines {
		l := &lines[i]
		a.report.Lines = l.number
		if l.bad != nil {
			a.takeBad(l.bad)
		} else if err := a.takeURL(&l.item); err != nil {
			return err
		}
		if a.to.Full() || len(a.answers) >= maxAnswers || a.text >= maxAnswerText {
			if err := a.commit(ctx); err != nil {
				return err
			}
			if err := a.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *adding) takeURL(item *urllist.Item) error {
	if a.each {
		a.added = append(a.added, len(a.answers))
		a.answers = append(a.answers, Answer{Line: item.Line, URL: item.URL.String()})
		a.text += len(item.URL.String())
	}
	return a.to.Add(crawl.Addition{URL: item.URL, Depth: item.Depth, Priority: item.Priority, Again: a.again})
}

func (a *adding) takeBad(bad *urllist.BadLine) {
	a.report.Bad++
	if len(a.report.Problems) < maxProblems {
		a.report.Problems = append(a.report.Problems, BadLine{bad.Line, bad.Text, bad.Reason})
	}
	if a.each {
		a.answers = append(a.answers, Answer{Line: bad.Line, Result: "bad", Reason: bad.Reason})
		a.text += len(bad.Reason)
	}
}

// commit commits the window and reports the results of its lines. The last answersPerReport of
// them are for the next write. Until the commit has ended it sends reports, which also detect that
// the client has gone.
func (a *adding) commit(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = a.to.Commit(ctx)
	}()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for waits := true; waits; {
		select {
		case <-done:
			waits = false
		case <-tick.C:
			if a.reportProgress() != nil {
				cancel()
			}
		}
	}
	if err != nil {
		return err
	}
	results := a.to.Results()
	for i, at := range a.added {
		a.answers[at].Result = results[i].String()
	}
	for len(a.answers) > answersPerReport {
		a.report.Answers, a.answers = a.answers[:answersPerReport], a.answers[answersPerReport:]
		if err := a.write(); err != nil {
			return err
		}
	}
	a.report.Answers, a.answers, a.added, a.text = a.answers, nil, a.added[:0], 0
	return nil
}

// reportProgress reports how far the commit has come, or why it does not go on.
func (a *adding) reportProgress() error {
	report := AddReport{Lines: a.report.Lines, Added: a.to.Sum(), Bad: a.report.Bad}
	if s := a.server.status(a.stream.r.Context()); s.State == "stalled" {
		report.Waiting = s.Reason
	}
	return errors.Join(a.stream.Lines.Write(&report), a.stream.flush())
}

// write writes the report.
func (a *adding) write() error {
	a.report.Added = a.to.Sum()
	err := errors.Join(a.stream.Lines.Write(&a.report), a.stream.flush())
	a.report.Problems, a.report.Answers = nil, nil
	return err
}
