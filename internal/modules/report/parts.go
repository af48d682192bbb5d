//go:build !core

package report

import (
	"context"
	"errors"

	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/service/server"
)

// Parts are what other modules add to reports.
type Parts []source

// source makes a part.
type source struct {
	part    Part // without text and rows
	audits  bool
	running func(context.Context, *server.Server) (text string, columns []string, rows [][]string, err error)
	stored  func(context.Context, *access.Crawl) (text string, columns []string, rows [][]string, err error)
}

// Add adds a part: running makes it for the crawl of this process, stored for one that does not run. If both text and
// rows are empty there is none. An error that is a [server.Incomplete] says what the part lacks. audits says that it
// checks the request log, which takes time.
func (p *Parts) Add(name, title string, audits bool,
	running func(context.Context, *server.Server) (text string, columns []string, rows [][]string, err error),
	stored func(context.Context, *access.Crawl) (text string, columns []string, rows [][]string, err error),
) {
	*p = append(*p, source{Part{Name: name, Title: title}, audits, running, stored})
}

// Running returns the parts for the crawl of this process, without audits only those that check no log. With parts that
// are incomplete the error is a [server.Incomplete], and the parts are there.
func (p Parts) Running(ctx context.Context, s *server.Server, audits bool) ([]Part, error) {
	return p.make(audits, func(one source) (string, []string, [][]string, error) { return one.running(ctx, s) })
}

// Stored is Running for a crawl that does not run.
func (p Parts) Stored(ctx context.Context, c *access.Crawl, audits bool) ([]Part, error) {
	return p.make(audits, func(one source) (string, []string, [][]string, error) { return one.stored(ctx, c) })
}

func (p Parts) make(audits bool, table func(source) (string, []string, [][]string, error)) (list []Part, err error) {
	var lacking, more *server.Incomplete
	for _, one := range p {
		if one.audits && !audits {
			continue
		}
		part := one.part
		part.Text, part.Columns, part.Rows, err = table(one)
		if errors.As(err, &more) {
			lacking = lacking.And(more)
		} else if err != nil {
			return nil, err
		}
		if part.Text != "" || len(part.Rows) > 0 {
			list = append(list, part)
		}
	}
	if lacking != nil {
		return list, lacking
	}
	return list, nil
}
