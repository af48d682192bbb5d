//go:build !core

package completeness

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/server"
)

// OfURL is what amble urls adds to what is known of a URL: how complete its page is, and lines that say it.
func OfURL(ctx context.Context, c *access.Crawl, i access.Inspector, s *inspect.URLStory) (any, [][2]string, error) {
	p, err := of(ctx, c, i, s.URL.URL)
	if err != nil || p == nil {
		return nil, nil, err
	}
	return p, p.rows(), nil
}

// api is the API of a running crawl.
type api interface {
	Command(ctx context.Context, method, path string, body, to any) error
}

// of returns how complete a page of a crawl is, which may run; nil: that is not known, or it is no document. i inspects
// the crawl.
func of(ctx context.Context, c *access.Crawl, i access.Inspector, page string) (p *PageRequisites, err error) {
	switch i := i.(type) {
	case api:
		p = new(PageRequisites)
		err := i.Command(ctx, http.MethodGet, Path+"?"+url.Values{"url": {page}}.Encode(), nil, p)
		if err != nil { // it is an addition: what is known of the URL itself is told without
			p = unknown(page)
			p.Incomplete = &server.Incomplete{Shards: []int{}, Why: []string{err.Error()}}
		}
	case View:
		p, err = One(ctx, Local{View: i, Dirs: []string{c.OutputDir()}}, page)
	}
	if p != nil && p.Captured.IsZero() && p.Incomplete == nil {
		return nil, err
	}
	return p, err
}

// maxListed is how many of the requisites that are not stored are listed.
const maxListed = 20

// rows are what is told of a page on a terminal: labels and texts.
func (p *PageRequisites) rows() (rows [][2]string) {
	switch {
	case p.Captured.IsZero() && p.Incomplete != nil:
		return [][2]string{{"made of", "not known: " + console.Printable(strings.Join(p.Incomplete.Why, "; "))}}
	case p.Named == 0:
		return nil
	}
	rows = append(rows, [2]string{"made of", p.summary()})
	for _, part := range p.Requisite[:min(len(p.Requisite), maxListed)] {
		rows = append(rows, [2]string{"", cmp.Or(part.Reason, part.State) + ": " + console.Printable(part.URL)})
	}
	if more := len(p.Requisite) - maxListed; more > 0 {
		rows = append(rows, [2]string{"", "and " + console.Plural(more, "more requisite")})
	}
	if p.Incomplete != nil {
		rows = append(rows, [2]string{"", console.Printable(p.Incomplete.Error())})
	}
	return rows
}

// summary is one line.
func (p *PageRequisites) summary() string {
	text := console.Plural(p.Named, "requisite")
	if p.Complete {
		return text + ", all stored"
	}
	text += ", " + console.Grouped(p.Stored) + " stored"
	if p.Waiting > 0 {
		text += ", " + console.Grouped(p.Waiting) + " waiting"
	}
	if n := p.missing(); n > 0 {
		text += ", " + console.Grouped(n) + " missing: " + counts(p.Missing)
	}
	return text
}

// counts lists reasons, the most frequent first.
func counts(by map[string]int) string {
	reasons := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = console.Grouped(by[r]) + " " + r
	}
	return strings.Join(reasons, ", ")
}

// maxPages bounds the pages that a report lists.
const maxPages = 100

// Running is the part of a report of the crawl of this process. It is empty for a crawl without requisites. If a part
// of a cluster has not answered, the error is a [server.Incomplete].
func Running(ctx context.Context, s *server.Server) (text string, columns []string, rows [][]string, err error) {
	c, division := s.Of(ctx)
	switch {
	case division != nil && division.Status(ctx).Requisites != nil:
		return tableOfNodes(ctx, division)
	case c != nil && hasRequisites(c.View()):
		l, err := local(ctx, s)
		if err != nil {
			return "", nil, nil, err
		}
		return tableOf(ctx, l)
	}
	return "", nil, nil, nil
}

// tableOfNodes is the part of a report of a cluster.
func tableOfNodes(ctx context.Context, d server.Division) (text string, columns []string, rows [][]string, err error) {
	r, err := post(pathAll, docQuestion{})
	if err != nil {
		return "", nil, nil, err
	}
	c, docs := &cluster{d: d}, new(Docs)
	if err := c.ofNodes(ctx, docs, r); err != nil {
		return "", nil, nil, err
	}
	text, columns, rows, err = table(ctx, docs, c)
	if err == nil && c.lacking != nil {
		err = c.lacking
	}
	return text, columns, rows, err
}

// tableOf is the part of a report of one machine.
func tableOf(ctx context.Context, l Local) (text string, columns []string, rows [][]string, err error) {
	d, err := l.Scan(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	return table(ctx, d, l)
}

// hasRequisites reports whether a crawl has fetched, or will fetch, what pages are made of.
func hasRequisites(v View) bool {
	store, _ := v.Records()
	return store.Counters().RequisitesByName() != nil
}

// Stored is Running for a crawl that does not run.
func Stored(ctx context.Context, c *access.Crawl) (text string, columns []string, rows [][]string, err error) {
	err = c.Inspect(ctx, func(i access.Inspector) error {
		v, stored := i.(View)
		if !stored {
			return nil
		}
		if !hasRequisites(v) {
			return nil
		}
		text, columns, rows, err = tableOf(ctx, Local{View: v, Dirs: []string{c.OutputDir()}})
		return err
	})
	return text, columns, rows, err
}

// table is the part of a report.
func table(ctx context.Context, d *Docs, s Source) (text string, columns []string, rows [][]string, err error) {
	states, err := d.Resolve(ctx, s, false)
	if err != nil {
		return "", nil, nil, err
	}
	sum := d.Sum(states, maxPages)
	for i := range sum.Incomplete {
		p := &sum.Incomplete[i]
		rows = append(rows, []string{p.URL, console.Grouped(p.Stored) + " of " + console.Grouped(p.Named),
			console.Grouped(p.Waiting), counts(p.Missing)})
	}
	return sum.Text(), []string{"PAGE", "STORED", "WAITING", "MISSING"}, rows, nil
}

// Text is a sentence about all pages.
func (s *Sum) Text() string {
	text := console.Grouped(s.Complete) + " of " + console.Plural(s.Pages, "stored page")
	if s.Pages == 1 {
		text += " has all that it is made of."
	} else {
		text += " have all that they are made of."
	}
	if s.Waiting > 0 {
		text += " Requisites that wait: " + console.Grouped(s.Waiting) + "."
	}
	if len(s.Missing) > 0 {
		text += " Missing requisites, by reason: " + counts(s.Missing) + "."
	}
	if s.Cut {
		text += " There are more pages than were compared."
	}
	return text
}
