package server

import (
	"context"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/audit"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/robots"
)

// The trailers of an audit: the number of violations, and the number of parts of the log that could
// not be read.
const (
	trailerViolations = "Amble-Violations"
	trailerDamaged    = "Amble-Damaged"
)

// auditQuery selects requests.
type auditQuery struct {
	Host  string    `query:"host" maxLength:"512" doc:"only requests to this host"`
	Since time.Time `query:"since" doc:"only requests that began since"`
}

func auditAPI(s *Server, api huma.API) {
	op := streams[audit.Line](api, Operation("GET", "/audit", "audit",
		"Every request, and the limits it was checked against"))
	op.Description = "Reads the request log to its end, which takes time for a long log: " +
		"only one audit runs at a time. " +
		"The trailer " + trailerViolations + " has the number of violations, and " + trailerDamaged +
		" that of the parts of the log that could not be read: nothing is proven about those. " + trailerIncomplete +
		" lists the nodes of a cluster that have not answered to the end."
	Handle(api, op, func(ctx context.Context, q *auditQuery) (*huma.StreamResponse, error) {
		if d := s.divided(ctx); d != nil {
			return s.stream(func(t *stream) error { return auditOf(ctx, d, t) }), nil
		}
		if !s.auditing.TryLock() {
			return nil, huma.NewError(http.StatusServiceUnavailable,
				"another audit is running: try again when it has ended")
		}
		return s.stream(func(t *stream) error {
			defer s.auditing.Unlock()
			return s.audit(ctx, t, q)
		}), nil
	})
}

func (s *Server) audit(ctx context.Context, t *stream, q *auditQuery) error {
	o := audit.Options{Since: q.Since, Robots: robots.DefaultOptions()}
	logs, optOuts, err := s.audited(ctx)
	if err != nil {
		return err
	}
	o.OptOuts = crawl.ListOptOuts(optOuts)
	if q.Host != "" {
		o.Host = inspect.CanonicalHost(q.Host)
	}
	o.Each = func(r *requestlog.Request, f *audit.Finding) error {
		line := audit.NewLine(r, f)
		return t.Lines.Write(&line)
	}
	t.w.Header().Set("Trailer", trailerViolations+", "+trailerDamaged)
	t.begin()
	report, err := audit.Run(ctx, logs, o)
	t.w.Header().Set(trailerViolations, strconv.FormatUint(report.Counts.Violations, 10))
	t.w.Header().Set(trailerDamaged, strconv.Itoa(len(report.Damaged)))
	return err
}

// audited returns the request log of a crawl, or those of all shards that this node has ever had, and the opt-outs.
func (s *Server) audited(ctx context.Context) (logs [][]string, list []crawl.OptOut, err error) {
	if c := s.crawl(ctx); c != nil {
		dir := s.o.DataDir
		if s.o.Division != nil { // that of the shard
			dir = c.Status().DataDir
		}
		list, err = c.OptOuts()
		return [][]string{{filepath.Join(dir, requestlog.DirName)}}, list, err
	}
	dirs, err := filepath.Glob(filepath.Join(s.o.DataDir, "shards", "*", requestlog.DirName))
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		logs = append(logs, []string{dir})
	}
	all, err := askAll[optOutList](ctx, s.o.Division, AnswerTimeout, Read("/optouts", nil))
	return logs, all.OptOuts, err
}

// trailerIncomplete says which nodes are not in an audit.
const trailerIncomplete = "Amble-Incomplete"

// auditOf writes the audits of all nodes, one after the other.
func auditOf(ctx context.Context, d Division, t *stream) error {
	t.w.Header().Set("Trailer", trailerViolations+", "+trailerDamaged+", "+trailerIncomplete)
	failed := make(map[string]error)
	var violations, damaged uint64
	nodes := d.Nodes()
	for _, node := range nodes {
		trailer, err := auditNode(ctx, d, t, node)
		switch {
		case IsWrong(err) || ctx.Err() != nil:
			return err
		case err != nil:
			failed[node] = err
			continue
		}
		more, _ := strconv.ParseUint(trailer.Get(trailerViolations), 10, 64) // the node counts them
		violations += more
		more, _ = strconv.ParseUint(trailer.Get(trailerDamaged), 10, 64)
		damaged += more
	}
	if len(failed) == len(nodes) && !t.begun {
		return d.Absent(failed)
	}
	t.begin()
	t.w.Header().Set(trailerViolations, strconv.FormatUint(violations, 10))
	t.w.Header().Set(trailerDamaged, strconv.FormatUint(damaged, 10))
	if len(failed) > 0 {
		t.w.Header().Set(trailerIncomplete, strings.Join(SortedKeys(failed), ", "))
	}
	return nil
}

// auditNode writes the audit of a node, and returns its trailer.
func auditNode(ctx context.Context, d Division, t *stream, node string) (http.Header, error) {
	response, err := checked(d.AskNode(ctx, node, asked(ctx)))
	if err != nil {
		return nil, err
	}
	_, trailer, err := relay(t, response)
	return trailer, err
}
