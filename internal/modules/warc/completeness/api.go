//go:build !core

package completeness

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Path is where the API says how complete a page is, below server.BasePath.
const Path = "/requisites"

// Where shards and nodes answer each other.
const (
	pathStates = Path + "/states"
	pathNamed  = Path + "/named"
	pathAll    = Path + "/all"
)

// docQuestion is the body of a request to a shard or a node.
type docQuestion struct {
	URLs   []string    `json:"urls,omitempty"`
	Wanted []WantedDoc `json:"wanted,omitempty"`
}

// stateAnswer is that of a shard.
type stateAnswer struct {
	States map[string]RequisiteState `json:"states"`
}

const (
	maxQuestion = 64 << 20
	// answerTime bounds the answer about one page.
	answerTime = 20 * time.Second
)

// Register registers the operations.
func Register(s *server.Server, api huma.API) {
	op := server.Operation("GET", Path, "requisites", "How much of what a page is made of is stored")
	op.Description = "Counts the requisites that a page and its style sheets name, those that are stored, and those " +
		"that are missing, by reason; archive.requisites has a crawl fetch them. docs/ARCHIVE.md describes it. " +
		"captured is left out if the archive does not say what the page is made of."
	type query struct {
		URL string `query:"url" required:"true" doc:"of the page"`
	}
	server.Handle(api, op, func(ctx context.Context, q *query) (*server.Object[PageRequisites], error) {
		u, err := weburl.Parse(q.URL)
		if err != nil {
			return nil, huma.Error422UnprocessableEntity(err.Error())
		}
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		p, err := ofRunning(ctx, s, u.String())
		if err != nil {
			return nil, err
		}
		return &server.Object[PageRequisites]{Body: *p}, nil
	})
	hidden(s, api, pathStates, "requisites-states",
		func(ctx context.Context, l Local, q *docQuestion) (*stateAnswer, error) {
			source := stater(l)
			if _, division := s.Of(ctx); division != nil { // for amble archive verify
				source = &cluster{d: division}
			}
			states, err := source.States(ctx, q.URLs)
			return &stateAnswer{states}, err
		})
	hidden(s, api, pathNamed, "requisites-named", func(ctx context.Context, l Local, q *docQuestion) (*Docs, error) {
		d := new(Docs)
		return d, l.Find(ctx, d, q.Wanted)
	})
	hidden(s, api, pathAll, "requisites-all", func(ctx context.Context, l Local, _ *docQuestion) (*Docs, error) {
		return l.Scan(ctx)
	})
}

// hidden registers an operation for other nodes.
func hidden[T any](s *server.Server, api huma.API, path, id string,
	f func(context.Context, Local, *docQuestion) (*T, error)) {
	op := server.Operation("POST", path, id, "For other nodes of a cluster")
	op.Hidden, op.MaxBodyBytes = true, maxQuestion
	server.Handle(api, op, func(ctx context.Context, in *struct{ Body docQuestion }) (*server.Object[T], error) {
		l, err := local(ctx, s)
		if err != nil {
			return nil, err
		}
		value, err := f(ctx, l, &in.Body)
		if err != nil {
			return nil, err
		}
		return &server.Object[T]{Body: *value}, nil
	})
}

// local is the source of the crawl that a request is about, or of the archives of this node.
func local(ctx context.Context, s *server.Server) (l Local, err error) {
	if crawl, _ := s.Of(ctx); crawl != nil {
		l.View = crawl.View()
	}
	l.Dirs, err = dirs(ctx, s)
	return l, err
}

// ofRunning returns how complete a page of the crawl of this process is; it has no time of a capture if that is not
// known.
func ofRunning(ctx context.Context, s *server.Server, url string) (*PageRequisites, error) {
	if _, division := s.Of(ctx); division != nil {
		return ofCluster(ctx, division, url)
	}
	l, err := local(ctx, s)
	if err != nil {
		return nil, err
	}
	p, err := One(ctx, l, url)
	if p == nil {
		p = unknown(url)
	}
	return p, err
}

// ofCluster is ofRunning for a cluster.
func ofCluster(ctx context.Context, d server.Division, url string) (*PageRequisites, error) {
	if d.Status(ctx).Requisites == nil { // no shard has fetched any
		return unknown(url), nil
	}
	c := &cluster{d: d}
	p, err := One(ctx, c, url)
	isKnown := p != nil
	if !isKnown {
		p = unknown(url)
	}
	if c.lacking != nil && (!isKnown || p.Named > 0) {
		p.Incomplete, p.Complete = c.lacking, false
	}
	return p, err
}

// unknown is a page that nothing is known about.
func unknown(url string) *PageRequisites {
	return &PageRequisites{URL: url, Missing: map[string]int{}, Requisite: []MissingRequisite{}}
}

// One returns how complete a page is; nil: that is not known. What is no document has no time of a capture.
func One(ctx context.Context, s Source, url string) (*PageRequisites, error) {
	d := new(Docs)
	states, err := s.States(ctx, []string{url})
	if err != nil || !states[url].isStored() {
		return nil, err
	}
	if err := s.Find(ctx, d, []WantedDoc{{url, states[url].At}}); err != nil {
		return nil, err
	}
	became, err := d.Resolve(ctx, s, true)
	if err != nil {
		return nil, err
	}
	p, known := d.Page(url, became)
	if !known {
		return nil, nil
	}
	return &p, nil
}
