//go:build !core

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Retry selects the URLs to put back into their queues, or to leave out: those that match all fields that are set.
type Retry struct {
	States   []string     `json:"states,omitempty" maxItems:"5" enum:"failed,denied,excluded,redirected,retrying" doc:"in one of these states"`
	Reasons  []ReasonName `json:"reasons,omitempty" maxItems:"64" doc:"in their state for one of these reasons"`
	Statuses []int        `json:"statuses,omitempty" maxItems:"64" doc:"whose last response had one of these"`
	Host     string       `json:"host,omitempty" maxLength:"512" doc:"of this host"`
	Pattern  string       `json:"pattern,omitempty" maxLength:"1024" doc:"that match this regular expression (RE2)"`
	Contains string       `json:"contains,omitempty" maxLength:"2048" doc:"with this in the URL"`
	Seed     string       `json:"seed,omitempty" maxLength:"2048" doc:"pages of this seed"`
	Tag      string       `json:"tag,omitempty" maxLength:"64" doc:"pages of seeds with this tag"`
	URLs     []string     `json:"urls,omitempty" maxItems:"1000" doc:"these"`
	DryRun   bool         `json:"dry_run,omitempty" doc:"only count them"`
	Fetched  []FetchedIn  `json:"fetched,omitempty" maxItems:"100000" doc:"pages that were fetched in one of these spans of time, and no other URLs. They are fetched as if for the first time: what was stored of them is lost"`
	Drops    bool         `json:"-"` // it leaves them out
}

// FetchedIn is a span of time in which pages were fetched.
type FetchedIn struct {
	From  time.Time `json:"from" doc:"in whole seconds"`
	To    time.Time `json:"to" doc:"in whole seconds, included"`
	Shard *int      `json:"shard,omitempty" minimum:"0" doc:"in a cluster: only pages of this shard, by number; absent: of all"`
}

// TransformSchema implements huma.SchemaTransformer: at least one of the fields is required.
func (Retry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return selectionSchema(s) }

func selectionSchema(s *huma.Schema) *huma.Schema {
	one := 1
	lists := func(names ...string) *huma.Schema {
		l := &huma.Schema{Type: huma.TypeObject, Properties: make(map[string]*huma.Schema), Required: names}
		for _, name := range names {
			l.Properties[name] = &huma.Schema{Type: huma.TypeArray, MinItems: &one, Items: &huma.Schema{}}
		}
		l.PrecomputeMessages()
		return l
	}
	if s.Properties["fetched"] != nil {
		s.Not = lists("states", "fetched")
	}
	for name, field := range map[string]*huma.Schema{
		"states":   {Type: huma.TypeArray, MinItems: &one, Items: &huma.Schema{}},
		"reasons":  {Type: huma.TypeArray, MinItems: &one, Items: &huma.Schema{}},
		"statuses": {Type: huma.TypeArray, MinItems: &one, Items: &huma.Schema{}},
		"fetched":  {Type: huma.TypeArray, MinItems: &one, Items: &huma.Schema{}},
		"urls":     {Type: huma.TypeArray, MinItems: &one, Items: &huma.Schema{}},
		"host":     {Type: huma.TypeString, MinLength: &one}, "pattern": {Type: huma.TypeString, MinLength: &one},
		"contains": {Type: huma.TypeString, MinLength: &one}, "seed": {Type: huma.TypeString, MinLength: &one},
		"tag": {Type: huma.TypeString, MinLength: &one},
	} {
		if s.Properties[name] == nil {
			continue
		}
		s.AnyOf = append(s.AnyOf, &huma.Schema{Type: huma.TypeObject,
			Properties: map[string]*huma.Schema{name: field}, Required: []string{name}})
	}
	slices.SortFunc(s.AnyOf, func(a, b *huma.Schema) int { return strings.Compare(a.Required[0], b.Required[0]) })
	for _, field := range s.AnyOf {
		field.PrecomputeMessages()
	}
	return s
}

// Selection returns the selection of internal/engine/crawl. If all URLs are of one host, it becomes that of q.
func (q *Retry) Selection() (s sweep.Selection, err error) {
	if len(q.States)+len(q.Statuses)+len(q.Reasons)+len(q.Fetched)+len(q.URLs) == 0 &&
		q.Host+q.Pattern+q.Contains+q.Seed+q.Tag == "" {
		return s, errors.New("name the URLs, or choose them by states, statuses, reasons, host, seed, tag, contains " +
			"or pattern")
	}
	if s.URLs, err = q.urls(); err != nil {
		return s, err
	}
	can, cannot := frontier.CanPutBack(), "put back: want failed, denied, excluded, redirected or retrying"
	if s.Drop = q.Drops; s.Drop {
		can, cannot = frontier.CanDrop(), "dropped: it is that already"
	}
	if len(q.States) > 0 && len(q.Fetched) > 0 {
		return s, errors.New("states cannot be given with fetched: these pages are in state fetched")
	}
	for _, f := range q.Fetched {
		s.Fetched = append(s.Fetched, sweep.Span{From: f.From.Unix(), To: f.To.Unix()})
	}
	for _, name := range q.States {
		state, err := storage.ParseState(name)
		if err != nil {
			return s, err
		}
		if !can.Has(state) {
			return s, fmt.Errorf("a URL in state %q cannot be %s", name, cannot)
		}
		s.States |= storage.In(state)
	}
	for _, name := range q.Reasons {
		reason, err := inspect.ParseReason(string(name))
		if err != nil {
			return s, err
		}
		s.Reasons = append(s.Reasons, reason)
	}
	if q.Pattern != "" {
		if s.Pattern, err = regexp.Compile(q.Pattern); err != nil {
			return s, fmt.Errorf("pattern %q: %w", q.Pattern, err)
		}
	}
	s.Host, s.Statuses, s.Contains = q.Host, q.Statuses, q.Contains
	return s, s.OfSeed(q.Seed, q.Tag)
}

// urls returns the URLs in canonical form and sorted, and sets the host if it is the same of all.
func (q *Retry) urls() (list []string, err error) {
	hosts := make(map[string]bool)
	for _, text := range q.URLs {
		u, err := weburl.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("URL %.80q: %w", text, err)
		}
		list, hosts[u.Host()] = append(list, u.String()), true
	}
	if len(hosts) == 1 && q.Host == "" {
		for q.Host = range hosts {
		}
	}
	slices.Sort(list)
	return list, nil
}

// RetryReport reports the progress of a retry or a drop. It is one line of the response; the last one has
// Done or Error.
type RetryReport struct {
	sweep.Retried
	Done  bool   `json:"done,omitempty"`  // it has ended
	Error string `json:"error,omitempty"` // why there are no further reports
}

// Drop selects the URLs to leave out: those that match all fields that are set.
type Drop struct {
	States   []string     `json:"states,omitempty" maxItems:"6"`
	Reasons  []ReasonName `json:"reasons,omitempty" maxItems:"64" doc:"in their state for one of these reasons"`
	Statuses []int        `json:"statuses,omitempty" maxItems:"64" doc:"whose last response had one of these"`
	Host     string       `json:"host,omitempty" maxLength:"512" doc:"of this host"`
	Pattern  string       `json:"pattern,omitempty" maxLength:"1024" doc:"that match this regular expression (RE2)"`
	Contains string       `json:"contains,omitempty" maxLength:"2048" doc:"with this in the URL"`
	Seed     string       `json:"seed,omitempty" maxLength:"2048" doc:"pages of this seed"`
	Tag      string       `json:"tag,omitempty" maxLength:"64" doc:"pages of seeds with this tag"`
	URLs     []string     `json:"urls,omitempty" maxItems:"1000" doc:"these"`
	DryRun   bool         `json:"dry_run,omitempty" doc:"only count them"`
	Fetched  []FetchedIn  `json:"-"`
	Drops    bool         `json:"-"`
}

// TransformSchema is that of Retry, with other states.
func (Drop) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	states := s.Properties["states"]
	states.Items = enumOf([]string{"queued", "retrying", "failed", "denied", "redirected", "fetched"})
	states.Items.PrecomputeMessages()
	states.Description = "in one of these states; absent: queued and retrying, or with urls any"
	return selectionSchema(s)
}

func retryAPI(s *Server, api huma.API) {
	op := streams[RetryReport](api, Operation("POST", "/urls/retry", "urls-retry", "Put URLs back into their queues",
		append(bodyErrors(), http.StatusNotFound)...))
	op.Description = "URLs that failed, were denied or excluded, or whose redirect was not followed, are due at " +
		"once, and so are those that wait for another attempt. The delays of their hosts, and robots.txt, " +
		"apply as usual. The command is on disk before the first report; reports are sent while the URLs are " +
		"searched in the background, and the last one has done or error. " +
		"If a client disconnects, only the reports end. After a restart the crawl continues with it."
	Handle(api, op, func(ctx context.Context, in *struct{ Body Retry }) (*huma.StreamResponse, error) {
		return answerRetry(ctx, s, in.Body)
	})
	op = streams[RetryReport](api, Operation("POST", "/urls/drop", "urls-drop", "Leave URLs out",
		append(bodyErrors(), http.StatusNotFound)...))
	op.Description = "The URLs are excluded, and not fetched when they are found again. A request in flight may " +
		"finish. What is in the output stays. A retry of the reason operator undoes it. Else it is like a retry."
	Handle(api, op, func(ctx context.Context, in *struct{ Body Drop }) (*huma.StreamResponse, error) {
		q := Retry(in.Body)
		q.Drops = true
		return answerRetry(ctx, s, q)
	})
}

func answerRetry(ctx context.Context, s *Server, q Retry) (*huma.StreamResponse, error) {
	selection, err := q.Selection()
	if err != nil {
		return nil, errQuery{err}
	}
	if d := s.divided(ctx); d != nil {
		return s.stream(func(t *Stream) error { return retryOf(ctx, d, t, &q) }), nil
	}
	return s.stream(func(t *Stream) error { return s.retryURLs(ctx, t, selection, q.DryRun) }), nil
}

func (s *Server) retryURLs(ctx context.Context, t *Stream, selection sweep.Selection, dry bool) error {
	retry := s.crawl(ctx).Retry
	if dry {
		retry = s.crawl(ctx).CountRetries
	}
	last, err := retry(ctx, selection, func(p sweep.Retried) error {
		return errors.Join(t.Lines.Write(&RetryReport{Retried: p}), t.flush())
	})
	switch {
	case err == nil:
		return t.Lines.Write(&RetryReport{Retried: last, Done: true})
	case t.begun:
		return t.Lines.Write(&RetryReport{Retried: last, Error: err.Error()})
	}
	return err
}
