//go:build !core

package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amble-crawler/amble/internal/service/server"
)

// API has the operation that reports about the running crawl.
type API struct {
	Now   func() time.Time
	Parts Parts
	same  atomic.Pointer[Same]

	making sync.Mutex // held while a report of the whole crawl is made
}

// Use sets which URLs the crawl takes for the same. Any goroutine may call it.
func (a *API) Use(same Same) { a.same.Store(&same) }

// sameURLs returns what Use has set; before that, URLs are the same whose texts are.
func (a *API) sameURLs() Same {
	if same := a.same.Load(); same != nil {
		return *same
	}
	return func(url string) string { return url }
}

// Path is where the API has the report, below server.BasePath.
const Path = "/report"

// pathReferrers is where the nodes of a cluster answer what their output has.
const pathReferrers = Path + "/referrers"

// Bounds of a request.
const (
	writeTime = time.Minute // for the response, when it is made
	makeTime  = 30 * time.Minute
	maxWanted = 64 << 20 // bytes of the body of pathReferrers
)

// query selects a form of the report.
type query struct {
	Limit     int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"rows of each list"`
	Referrers int    `query:"referrers" minimum:"0" maximum:"10000" default:"100" doc:"of a link; 0: read no output"`
	Format    string `query:"format" enum:"json,html,csv" default:"json" doc:"an object, a page, or one list as CSV"`
	Table     string `query:"table" enum:"broken,redirects,hosts,seeds,counts" default:"broken" doc:"the list for CSV"`
	Audit     bool   `query:"audit" default:"true" doc:"check the request log: what it proves of politeness"`
	Part      bool   `query:"part" doc:"of one shard of a cluster, which adds it to others"`
}

// Register registers the operation. One report of a server is made at a time.
func (a *API) Register(s *server.Server, api huma.API) {
	op := server.Operation("GET", Path, "report", "What the crawl came to", http.StatusNotImplemented)
	op.Description = "Walks over the whole database, and over the output unless referrers is 0, while the crawl " +
		"continues: that takes time for a large crawl, so only one report is made at a time. docs/REPORT.md " +
		"describes it."
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Summary](), true, "")
	op.Responses = map[string]*huma.Response{"200": {Description: "the report", Content: map[string]*huma.MediaType{
		"application/json": {Schema: schema}, "text/html": {}, "text/csv": {},
	}}}
	server.Handle(api, op, func(_ context.Context, q *query) (*huma.StreamResponse, error) {
		return a.respond(func(ctx context.Context) (*Summary, error) { return a.report(ctx, s, q) }, q)
	})
	found := server.Operation("POST", pathReferrers, "report-referrers", "What the output of a node has about URLs")
	found.Hidden, found.MaxBodyBytes = true, maxWanted
	server.Handle(api, found, func(ctx context.Context, in *struct{ Body Wanted }) (*server.Object[Found], error) {
		dirs, err := outputs(ctx, s)
		if err != nil {
			return nil, err
		}
		f, err := Scan(ctx, dirs, in.Body, a.sameURLs())
		if err != nil {
			return nil, err
		}
		return &server.Object[Found]{Body: *f}, nil
	})
}

// respond makes a report, and writes it.
func (a *API) respond(report func(context.Context) (*Summary, error), q *query) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // they are for requests that are answered at once
		_ = control.SetWriteDeadline(a.Now().Add(makeTime))
		ctx, cancel := context.WithTimeout(c.Context(), makeTime)
		defer cancel()
		var text bytes.Buffer
		r, err := report(ctx)
		if err == nil {
			err = r.Write(&text, q.Format, q.Table)
		}
		if err != nil {
			status := http.StatusServiceUnavailable
			if known := huma.StatusError(nil); errors.As(err, &known) {
				status = known.GetStatus()
			}
			server.WriteProblem(w, status, err.Error())
			return
		}
		_ = control.SetWriteDeadline(a.Now().Add(writeTime))
		w.Header().Set("Content-Type", MediaType(q.Format))
		if q.Format == FormatHTML {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		}
		_, _ = w.Write(text.Bytes()) // the client may have gone
	}}, nil
}

// report makes the report of what an operation is about.
func (a *API) report(ctx context.Context, s *server.Server, q *query) (*Summary, error) {
	o := Options{Limit: q.Limit, Referrers: q.Referrers, Now: a.Now()}
	crawl, division := s.Of(ctx)
	if crawl != nil && q.Part {
		o.part = true
		return Make(ctx, crawl.View(), crawl.Status().State, true, o)
	}
	if !a.making.TryLock() {
		return nil, huma.Error503ServiceUnavailable("another report is being made: try again when it has ended")
	}
	defer a.making.Unlock()
	var r *Summary
	var err error
	switch {
	case division != nil:
		r, err = ofAll(ctx, division, division.Status(ctx).State, o)
	case crawl != nil:
		if r, err = Make(ctx, crawl.View(), crawl.Status().State, true, o); err == nil && o.Referrers > 0 {
			var f *Found
			if f, err = Scan(ctx, []string{crawl.Status().OutputDir}, r.Wants(o), a.sameURLs()); err == nil {
				r.Complete(o, f)
			}
		}
	default:
		return nil, huma.Error501NotImplemented("a node has no report of its own")
	}
	if err == nil {
		r.Parts, err = a.Parts.Running(ctx, s, q.Audit)
		if lacking := (*server.Incomplete)(nil); errors.As(err, &lacking) {
			r.Incomplete, err = r.Incomplete.And(lacking), nil
		}
	}
	return r, err
}

// outputs returns the directories of the output of a crawl, or of all shards that this node has ever had.
func outputs(ctx context.Context, s *server.Server) (dirs []string, err error) {
	if crawl, _ := s.Of(ctx); crawl != nil {
		return []string{crawl.Status().OutputDir}, nil
	}
	logs, err := s.RequestLogs(ctx)
	for _, log := range logs { // each is beside the output
		dirs = append(dirs, filepath.Join(filepath.Dir(log), "output"))
	}
	return dirs, err
}

// ofAll adds up the reports of all shards, and has all nodes read their output.
func ofAll(ctx context.Context, d server.Division, state string, o Options) (*Summary, error) {
	shards := make([]int, d.Shards())
	for i := range shards {
		shards[i] = i
	}
	v := url.Values{"limit": {strconv.Itoa(o.Limit)}, "referrers": {"0"}, "part": {"true"}}
	parts, failed, err := server.Gather(ctx, shards, func(ctx context.Context, shard int) (*Summary, error) {
		if err := isCrawled(ctx, d, shard); err != nil {
			return nil, err
		}
		return server.DecodeObject[Summary](server.AskShard(ctx, d, shard, server.Read(Path, v)))
	})
	if err != nil {
		return nil, err
	}
	sum := newSummary()
	sum.At, sum.State, sum.Incomplete = o.Now.UTC(), state, server.MissingShards(failed)
	for _, shard := range server.SortedKeys(parts) {
		sum.Add(parts[shard], o)
	}
	if len(parts) == 0 {
		return nil, sum.Incomplete
	}
	sum.addUnknownSeeds(ctx, d, o)
	if o.Referrers == 0 {
		return sum, nil
	}
	body, err := json.Marshal(sum.Wants(o))
	if err != nil {
		return nil, err
	}
	r := server.Read(pathReferrers, nil)
	r.Method, r.Kind, r.Body = http.MethodPost, "application/json", body
	found, absent, err := server.Gather(ctx, d.Nodes(), func(ctx context.Context, node string) (*Found, error) {
		response, err := d.AskNode(ctx, node, r)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.Join(fmt.Errorf("node %s: %s", node, response.Status), response.Body.Close())
		}
		return server.DecodeObject[Found](response, err)
	})
	if err != nil {
		return nil, err
	}
	var all []*Found
	for _, node := range server.SortedKeys(found) {
		all = append(all, found[node])
	}
	sum.Complete(o, all...)
	if len(absent) > 0 {
		sum.Incomplete = sum.Incomplete.And(d.Absent(absent))
	}
	return sum, nil
}

// isCrawled returns an error if no node answers for a shard now. A report takes long, so that nobody would wait for it
// in vain.
func isCrawled(ctx context.Context, d server.Division, shard int) error {
	ctx, cancel := context.WithTimeout(ctx, server.AnswerTimeout)
	defer cancel()
	response, err := server.AskShard(ctx, d, shard, server.Read("/status", nil))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// addUnknownSeeds adds the seeds that no shard has in its database: the first one that answers lists all.
func (r *Summary) addUnknownSeeds(ctx context.Context, d server.Division, o Options) {
	known := make(map[string]bool, len(r.Seeds.List))
	for i := range r.Seeds.List {
		known[r.Seeds.List[i].URL] = true
	}
	for shard := range d.Shards() {
		if isCrawled(ctx, d, shard) != nil {
			continue
		}
		response, err := server.AskShard(ctx, d, shard, server.Read("/seeds", nil))
		if err != nil {
			continue
		}
		for lines := json.NewDecoder(response.Body); ; {
			var e server.SeedEntry
			if lines.Decode(&e) != nil {
				break
			}
			if e.Of == "" && !known[e.URL] && len(r.Seeds.List) < maxSeedCounts {
				r.Seeds.List = append(r.Seeds.List, Seed{URL: e.URL, State: stateUnknown, Source: e.Source})
			}
		}
		_ = response.Body.Close()
		break
	}
	r.Seeds.finish(o.Limit)
}
