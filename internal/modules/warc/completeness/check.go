//go:build !core

package completeness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/storage"
)

// Check counts how much of what the pages of an archive are made of the archive itself has, with the reasons that the
// database of its crawl has for the rest; the crawl may run. If that cannot be asked, noCrawl says why: the reasons are
// those of the files alone.
func Check(ctx context.Context, c *warcfiles.Collection, crawl *access.Crawl) (s Sum, noCrawl, err error) {
	d, files := new(Docs), stored{c}
	if err := d.Scan(ctx, c); err != nil {
		return s, nil, err
	}
	var states States
	if slices.ContainsFunc(d.List, func(doc Doc) bool { return doc.Page && len(doc.Parts) > 0 }) {
		noCrawl = crawl.Inspect(ctx, func(i access.Inspector) (err error) {
			states, err = d.resolveWith(ctx, files, i)
			return err
		})
	}
	if states == nil {
		if states, err = d.Resolve(ctx, files, false); err != nil {
			return s, nil, err
		}
	}
	return d.Sum(states, maxPages), noCrawl, nil
}

// resolveWith is Resolve with what inspects the crawl.
func (d *Docs) resolveWith(ctx context.Context, files stored, i access.Inspector) (States, error) {
	var crawl stater
	switch i := i.(type) {
	case api:
		crawl = running{i}
	case View:
		crawl = Local{View: i}
	}
	if err := d.isOf(ctx, crawl); err != nil {
		return nil, err
	}
	return d.Resolve(ctx, explained{files, crawl}, false)
}

// isOf returns an error if a crawl knows none of the pages, so that the archive is that of another one.
func (d *Docs) isOf(ctx context.Context, crawl stater) error {
	var pages []string
	for i := range d.List {
		if d.List[i].Page && len(pages) < maxURLs {
			pages = append(pages, d.Texts[d.List[i].URL])
		}
	}
	states, err := crawl.States(ctx, pages)
	if err != nil {
		return err
	}
	for _, s := range states {
		if s.State != inspect.StateUnknown {
			return nil
		}
	}
	return errors.New("it is that of another crawl, and knows none of these pages: set data_dir to that of theirs")
}

// stater is the part of a Source that knows states.
type stater interface {
	States(ctx context.Context, urls []string) (map[string]RequisiteState, error)
}

// running is the stater of a running crawl, or of its cluster.
type running struct{ api }

// States implements stater.
func (r running) States(ctx context.Context, urls []string) (map[string]RequisiteState, error) {
	return inParts(urls, func(q *docQuestion) (*stateAnswer, error) {
		a := new(stateAnswer)
		return a, r.Command(ctx, http.MethodPost, pathStates, q, a)
	})
}

// stored is the source that knows no more than what an archive has.
type stored struct{ c *warcfiles.Collection }

// States implements Source.
func (s stored) States(ctx context.Context, urls []string) (map[string]RequisiteState, error) {
	states := make(map[string]RequisiteState, len(urls))
	for _, u := range urls {
		states[u] = RequisiteState{Reason: ReasonNotStored}
	}
	err := s.c.Captures(ctx, "", func(e *warc.Entry) error {
		before, wanted := states[e.URL]
		if !wanted || e.Time.Before(before.At) {
			return nil
		}
		now := RequisiteState{State: storage.Fetched.String(), At: e.Time}
		switch {
		case e.Status/100 == 3 && e.Status != http.StatusNotModified:
			now.State = storage.Redirected.String()
		case e.Status >= http.StatusBadRequest:
			now.State, now.Reason = storage.Failed.String(), fmt.Sprintf("status %d", e.Status)
		}
		states[e.URL] = now
		return nil
	})
	return states, err
}

// Find implements Source.
func (s stored) Find(ctx context.Context, d *Docs, wanted []WantedDoc) error {
	return d.Find(ctx, s.c, wanted)
}

// explained is stored, with the reasons that a crawl has for what the archive does not have.
type explained struct {
	stored
	crawl stater
}

// States implements Source.
func (e explained) States(ctx context.Context, urls []string) (map[string]RequisiteState, error) {
	why, err := e.crawl.States(ctx, urls) // first: the files have by now what it has fetched
	if err != nil {
		return nil, err
	}
	states, err := e.stored.States(ctx, urls)
	for u, s := range states {
		switch w := why[u]; {
		case s.isStored(), w.State == "", w.isStored(), w.leadsOn(): // only the files say whether they have it
		case s.State != "" && w.State == inspect.StateUnknown:
		case s.leadsOn() && w.At.Truncate(time.Second).After(s.At): // it has failed since
		default:
			states[u] = w
		}
	}
	return states, err
}
