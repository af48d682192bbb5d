package server

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/audit"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/robots"
)

// The trailers of an audit: how many violations there are, and how many parts of the log could not
// be read.
const (
	trailerViolations = "Amble-Violations"
	trailerDamaged    = "Amble-Damaged"
)

// auditQuery asks for requests.
type auditQuery struct {
	Host  string    `query:"host" maxLength:"512" doc:"only requests to this host"`
	Since time.Time `query:"since" doc:"only requests that began since"`
}

func (s *Server) auditAPI(api huma.API) {
	op := streams[audit.Line](api, operation("GET", "/audit", "audit", "Every request, and what it was held against"))
	op.Description = "Reads the request log to its end, which takes a while for a long one: " +
		"only one audit runs at a time. " +
		"The trailer " + trailerViolations + " has the number of violations, and " + trailerDamaged +
		" that of the parts of the log that could not be read: about those nothing is proven."
	handle(api, op, func(ctx context.Context, q *auditQuery) (*huma.StreamResponse, error) {
		if !s.auditing.TryLock() {
			return nil, huma.NewError(http.StatusServiceUnavailable, "an audit is under way already: try again when it has ended")
		}
		return s.stream(func(t *stream) error {
			defer s.auditing.Unlock()
			return s.audit(ctx, t, q)
		}), nil
	})
}

func (s *Server) audit(ctx context.Context, t *stream, q *auditQuery) error {
	o := audit.Options{Since: q.Since, Robots: robots.DefaultOptions()}
	if q.Host != "" {
		o.Host = inspect.CanonicalHost(q.Host)
	}
	o.Each = func(r *requestlog.Request, f *audit.Finding) error {
		line := audit.NewLine(r, f)
		return t.Lines.Write(&line)
	}
	t.w.Header().Set("Trailer", trailerViolations+", "+trailerDamaged)
	t.begin()
	report, err := audit.Run(ctx, filepath.Join(s.o.DataDir, requestlog.DirName), o)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // nothing was asked for yet, or no log is kept
	}
	if report != nil {
		t.w.Header().Set(trailerViolations, strconv.FormatUint(report.Counts.Violations, 10))
		t.w.Header().Set(trailerDamaged, strconv.Itoa(len(report.Damaged)))
	}
	return err
}
