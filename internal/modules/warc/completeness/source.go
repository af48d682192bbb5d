//go:build !core

package completeness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// View is the part of an [inspect.View] that is read.
type View interface {
	Records() (inspect.Store, *seeds.Set)
	Options() inspect.Options
}

// Local is the source of one database, and of the archives in some directories.
type Local struct {
	View View
	Dirs []string
}

// States implements Source.
func (l Local) States(ctx context.Context, urls []string) (map[string]RequisiteState, error) {
	store, _ := l.View.Records()
	o := l.View.Options()
	states := make(map[string]RequisiteState, len(urls))
	for i, text := range urls {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		u, err := weburl.Parse(text)
		if err != nil {
			continue
		}
		head, _, err := store.Lookup(u)
		switch {
		case err == nil:
			states[text] = stateOf(&head)
		case errors.Is(err, storage.ErrNotFound):
			states[text] = RequisiteState{State: inspect.StateUnknown, Reason: refused(&o, u)}
		default:
			return nil, fmt.Errorf("look up %s: %w", text, err)
		}
	}
	return states, nil
}

// refused returns why a requisite is not in the database.
func refused(o *inspect.Options, u weburl.URL) string {
	if o.OptOut != nil && o.OptOut(u.Host(), "") != "" {
		return inspect.ReasonName(storage.ReasonOptOut)
	}
	if o.Scope != nil {
		if in, _ := o.Scope(u, &storage.Entry{Priority: storage.PriorityRequisite}); !in {
			return inspect.ReasonName(storage.ReasonScope)
		}
	}
	return ReasonNotTaken
}

// stateOf returns the state of a URL of the database.
func stateOf(h *storage.Head) RequisiteState {
	o := &h.Last
	s := RequisiteState{State: o.State.String(), Reason: inspect.ReasonName(o.Reason), At: o.At.UTC()}
	if o.Reason == storage.ReasonStatus && o.Status > 0 {
		s.Reason = fmt.Sprintf("status %d", o.Status)
	}
	return s
}

// Find implements Source.
func (l Local) Find(ctx context.Context, d *Docs, wanted []WantedDoc) error {
	return l.each(func(c *warcfiles.Collection) error { return d.Find(ctx, c, wanted) })
}

// Scan reads what all documents of the archives name.
func (l Local) Scan(ctx context.Context) (*Docs, error) {
	d := new(Docs)
	err := l.each(func(c *warcfiles.Collection) error { return d.Scan(ctx, c) })
	return d, err
}

// each calls f for the archives that are there.
func (l Local) each(f func(*warcfiles.Collection) error) error {
	for _, dir := range l.Dirs {
		c, err := warcfiles.OpenCollection(dir, []archive.Format{warcfiles.Format()})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = f(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dirs returns the directories of the output of a crawl, or of all shards that this node has ever had.
func dirs(ctx context.Context, s *server.Server) (all []string, err error) {
	if crawl, _ := s.Of(ctx); crawl != nil {
		return []string{crawl.Status().OutputDir}, nil
	}
	logs, err := s.RequestLogs(ctx)
	for _, log := range logs { // each is beside the output
		all = append(all, filepath.Join(filepath.Dir(log), "output"))
	}
	return all, err
}

// cluster is the source of all nodes. One goroutine uses it.
type cluster struct {
	d       server.Division
	lacking *server.Incomplete
}

// reasonNoAnswer is the reason of a URL whose shard does not answer.
const reasonNoAnswer = "no answer"

// Bounds of a question about states.
const (
	maxURLs     = 2000
	maxURLBytes = 1 << 20
)

// inParts asks about URLs, some at a time.
func inParts(urls []string, ask func(*docQuestion) (*stateAnswer, error)) (map[string]RequisiteState, error) {
	states := make(map[string]RequisiteState, len(urls))
	for len(urls) > 0 {
		n, size := 1, len(urls[0])
		for n < min(len(urls), maxURLs) && size+len(urls[n]) <= maxURLBytes {
			size += len(urls[n])
			n++
		}
		part, err := ask(&docQuestion{URLs: urls[:n]})
		if err != nil {
			return nil, err
		}
		maps.Copy(states, part.States)
		urls = urls[n:]
	}
	return states, nil
}

// States implements Source.
func (c *cluster) States(ctx context.Context, urls []string) (map[string]RequisiteState, error) {
	byShard := make(map[int][]string)
	for _, text := range urls {
		if u, err := weburl.Parse(text); err == nil {
			shard := c.d.ShardOf(u.Host())
			byShard[shard] = append(byShard[shard], text)
		}
	}
	ask := func(ctx context.Context, shard int) (map[string]RequisiteState, error) {
		return inParts(byShard[shard], func(q *docQuestion) (*stateAnswer, error) {
			r, err := post(pathStates, q)
			if err != nil {
				return nil, err
			}
			return server.DecodeObject[stateAnswer](server.AskShard(ctx, c.d, shard, r))
		})
	}
	parts, failed, err := server.Gather(ctx, server.SortedKeys(byShard), ask)
	if err != nil {
		return nil, err
	}
	all := make(map[string]RequisiteState, len(urls))
	for shard := range failed {
		for _, u := range byShard[shard] {
			all[u] = RequisiteState{State: inspect.StateUnknown, Reason: reasonNoAnswer}
		}
	}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	c.lacking = c.lacking.And(server.MissingShards(failed))
	return all, nil
}

// Find implements Source.
func (c *cluster) Find(ctx context.Context, d *Docs, wanted []WantedDoc) error {
	r, err := post(pathNamed, docQuestion{Wanted: wanted})
	if err != nil {
		return err
	}
	return c.ofNodes(ctx, d, r)
}

// ofNodes adds what all nodes answer.
func (c *cluster) ofNodes(ctx context.Context, d *Docs, r *server.Request) error {
	parts, absent, err := server.Gather(ctx, c.d.Nodes(), func(ctx context.Context, node string) (*Docs, error) {
		response, err := c.d.AskNode(ctx, node, r)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.Join(fmt.Errorf("node %s: %s", node, response.Status), response.Body.Close())
		}
		docs, err := server.DecodeObject[Docs](response, err)
		if err == nil && !docs.isSound() {
			err = server.Unanswered(fmt.Errorf("node %s: its answer cannot be used", node))
		}
		return docs, err
	})
	if err != nil {
		return err
	}
	for _, node := range server.SortedKeys(parts) {
		d.Add(parts[node])
	}
	if len(absent) > 0 {
		c.lacking = c.lacking.And(c.d.Absent(absent))
	}
	return nil
}

// post returns a request of the API with a body.
func post(path string, body any) (*server.Request, error) {
	encoded, err := json.Marshal(body)
	r := server.Read(path, nil)
	r.Method, r.Kind, r.Body = http.MethodPost, "application/json", encoded
	return r, err
}
