package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// hostsQuery selects a page of hosts.
type hostsQuery struct {
	State    HostFilter `query:"state" doc:"only these hosts; trouble is failing"`
	Sort     string     `query:"sort" enum:"waiting,urls,requests,bytes,failures,delay,finish,next,name,found" doc:"the order: numbers largest first, failures by the share of URLs that failed, next soonest first, name by the labels from the right, found in the order of discovery; default: waiting, or name with under and contains"`
	Limit    int        `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"hosts of a page"`
	After    string     `query:"after" maxLength:"24576" doc:"next of the previous page"`
	Under    string     `query:"under" maxLength:"512" doc:"only this domain and the hosts below it"`
	Contains string     `query:"contains" maxLength:"512" doc:"only hosts with this in their name; by name, a page ends after a bounded number of names was inspected, and may be empty"`
}

// HostFilter is a state of hosts in a query: suspected selects those with evidence for a wall, in whatever state.
type HostFilter string

// Schema implements huma.SchemaProvider. trouble is an earlier name of failing.
func (HostFilter) Schema(huma.Registry) *huma.Schema {
	return enumOf(append(inspect.HostFilters(), "trouble"))
}

// HostPath names a host. It is exported because huma reads only fields of exported types.
type HostPath struct {
	Host string `path:"host" maxLength:"512" doc:"its name"`
}

func (p *HostPath) host() (string, error) { return p.Host, nil }

func hostsAPI(s *Server, api huma.API) {
	Handle(api, Operation("GET", "/hosts", "hosts-list", "Hosts, a page at a time"), s.listHosts)
	Handle(api, Operation("GET", "/hosts/{host}", "hosts-one", "Everything known of a host", http.StatusNotFound),
		ofOwner(s, (*HostPath).host, func(ctx context.Context, q *HostPath) (*Object[inspect.HostStory], error) {
			return answer(s.crawl(ctx).View().Host(ctx, q.Host))
		}))
}

func (s *Server) listHosts(ctx context.Context, q *hostsQuery) (*Object[hostsOfAll], error) {
	if q.Sort == "" {
		q.Sort = "waiting"
		if q.Under != "" || q.Contains != "" {
			q.Sort = "name"
		}
	}
	if d := s.divided(ctx); d != nil {
		return answer(hostsOf(ctx, d, q))
	}
	page, err := s.crawl(ctx).View().HostPage(ctx, inspect.HostQuery{
		State: string(q.State), Sort: q.Sort, Limit: q.Limit, After: q.After, Under: q.Under, Contains: q.Contains,
	})
	return answer(hostsOfAll{HostPage: page}, err)
}

// URLFilter selects URLs. It is exported because huma reads only fields of exported types.
type URLFilter struct {
	Host   string     `query:"host" maxLength:"512" doc:"only URLs of this host"`
	State  string     `query:"state" enum:"queued,fetched,redirected,failed,denied,excluded,retrying" doc:"only URLs in this state"`
	Reason ReasonName `query:"reason" doc:"only URLs that are in their state for this reason"`
	Status int        `query:"status" minimum:"100" maximum:"999" doc:"only URLs whose last response had this status"`
	Part   string     `query:"contains" maxLength:"2048" doc:"only URLs with this in them"`
	Seed   string     `query:"seed" maxLength:"2048" doc:"only pages of this seed"`
	Tag    string     `query:"tag" maxLength:"64" doc:"only pages of seeds with this tag"`
	From   string     `query:"from" maxLength:"32" pattern:"^([1-3]?[0-9]{1,9}[.][1-3]?[0-9]{1,9})?$" doc:"continue from here: next of the previous page" example:"12.340"`
}

func (f *URLFilter) query() (q inspect.URLQuery, err error) {
	q.Host, q.Status, q.Contains = f.Host, f.Status, f.Part
	if q.From, err = storage.ParsePosition(f.From); err == nil {
		err = errors.Join(q.Filter(f.State, string(f.Reason)), q.OfSeed(f.Seed, f.Tag))
	}
	if err != nil {
		err = errQuery{err}
	}
	return q, err
}

// urlsQuery selects a page of URLs.
type urlsQuery struct {
	URLFilter
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"URLs of a page at most"`
}

// ReasonName is the name of a reason. The description lists all of them.
type ReasonName string

// Schema implements huma.SchemaProvider.
func (ReasonName) Schema(huma.Registry) *huma.Schema { return enumOf(inspect.ReasonNames()) }

// enumOf returns the schema of a text with few values.
func enumOf(names []string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, name := range names {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// urlQuery names a URL.
type urlQuery struct {
	URL string `query:"url" required:"true" maxLength:"2048" doc:"the URL, in any form"`
}

// maxExamined is how many URLs are inspected for one page.
const maxExamined = 10_000

func urlsAPI(s *Server, api huma.API) {
	list := Operation("GET", "/urls", "urls-list", "URLs, a page at a time", http.StatusNotFound)
	list.Description = "Host by host in the order of discovery. A page ends with the limit, or after a bounded " +
		"number of URLs was inspected, and may be empty: it is the last one if next is missing."
	Handle(api, list, ofOwner(s, func(q *urlsQuery) (string, error) { return q.Host, nil }, s.listURLs))
	Handle(api, Operation("GET", "/url", "urls-one", "Everything known of a URL, and what would become of it",
		http.StatusNotFound), ofOwner(s, hostOfURL(func(q *urlQuery) string { return q.URL }), s.showURL))
	addAPI(s, api)
	urlCommandsAPI(s, api)
}

func (s *Server) listURLs(ctx context.Context, q *urlsQuery) (*Object[urlsOfAll], error) {
	if d := s.divided(ctx); d != nil {
		return answer(urlsOf(ctx, d, q))
	}
	query, err := q.query()
	if err != nil {
		return nil, err
	}
	query.Limit, query.Examine = q.Limit, maxExamined
	page, err := s.crawl(ctx).View().URLPage(ctx, query)
	return answer(urlsOfAll{URLPage: page}, err)
}

func (s *Server) showURL(ctx context.Context, q *urlQuery) (*Object[inspect.URLStory], error) {
	u, err := weburl.Parse(q.URL)
	if err != nil {
		return nil, errQuery{err}
	}
	return answer(s.crawl(ctx).View().URL(ctx, u))
}

// robotsQuery names an origin.
type robotsQuery struct {
	Origin string `query:"origin" required:"true" maxLength:"1024" doc:"scheme, host and port" example:"https://www.example.com"`
}

// robotsCheckQuery names URLs.
type robotsCheckQuery struct {
	URLs []string `query:"url,explode" required:"true" minItems:"1" maxItems:"100" maxLength:"2048" doc:"may be given more than once"`
}

// robotsChecks are verdicts.
type robotsChecks struct {
	URLs []inspect.Checked `json:"urls"`
}

func robotsAPI(s *Server, api huma.API) {
	Handle(api, Operation("GET", "/robots", "robots-text",
		"The robots.txt of an origin in force, and its earlier versions"),
		ofOwner(s, hostOfURL(func(q *robotsQuery) string { return q.Origin }),
			func(ctx context.Context, q *robotsQuery) (*Object[inspect.RobotsText], error) {
				u, err := weburl.Parse(q.Origin)
				if err != nil {
					return nil, errQuery{err}
				}
				return answer(s.crawl(ctx).View().RobotsText(u.Origin()))
			}))
	check := Operation("GET", "/robots/check", "robots-check", "What robots.txt says about URLs")
	check.Description = "By the stored robots.txt of each origin. Nothing is fetched: if no robots.txt was read " +
		"yet, nothing is allowed yet."
	Handle(api, check, func(ctx context.Context, q *robotsCheckQuery) (*Object[robotsChecks], error) {
		urls := make([]weburl.URL, 0, len(q.URLs))
		for _, text := range q.URLs {
			u, err := weburl.Parse(text)
			if err != nil {
				return nil, errQuery{fmt.Errorf("%q: %w", text, err)}
			}
			urls = append(urls, u)
		}
		if d := s.divided(ctx); d != nil {
			return answer(checkRobotsOf(ctx, d, urls))
		}
		list, err := s.crawl(ctx).View().CheckRobots(urls)
		return answer(robotsChecks{list}, err)
	})
}

// Trailers of streams.
const (
	trailerMatching = "Amble-Matching" // matching hosts
	trailerNext     = "Amble-Next"     // the position to continue from; absent at the end
)

// exportQuery selects any number of URLs.
type exportQuery struct {
	URLFilter
	Limit  int    `query:"limit" minimum:"0" default:"0" doc:"at most this many; 0: all"`
	Format string `query:"format" enum:"jsonl,csv" default:"jsonl" doc:"JSON lines or CSV"`
}

// exportHostsQuery selects any number of hosts.
type exportHostsQuery struct {
	State    HostFilter `query:"state" doc:"only these hosts"`
	Under    string     `query:"under" maxLength:"512" doc:"only this domain and the hosts below it"`
	Contains string     `query:"contains" maxLength:"512" doc:"only hosts with this in their name"`
	Limit    int        `query:"limit" minimum:"0" default:"0" doc:"at most this many; 0: all"`
	Format   string     `query:"format" enum:"jsonl,csv" default:"jsonl" doc:"JSON lines or CSV"`
}

func exportAPI(s *Server, api huma.API) {
	urls := streams[inspect.URL](api, Operation("GET", "/export", "export-urls", "Every URL as JSON lines",
		http.StatusNotFound))
	urls.Description = "Walks over the whole database, in short steps, while the crawl continues. If the limit " +
		"ended it, the trailer " + trailerNext + " has the position to continue from."
	Handle(api, urls, s.exportURLs)
	hosts := streams[inspect.Host](api,
		Operation("GET", "/export/hosts", "export-hosts", "Every host as JSON lines, in the order of discovery"))
	hosts.Description = "The trailer " + trailerMatching + " has their number."
	Handle(api, hosts, s.exportHosts)
}

func (s *Server) exportURLs(ctx context.Context, q *exportQuery) (*huma.StreamResponse, error) {
	if d := s.divided(ctx); d != nil {
		return s.stream(func(t *Stream) error {
			out := newRows[inspect.URL](t, q.Format, "urls")
			return errors.Join(exportOf(ctx, d, out, q), out.end())
		}), nil
	}
	query, err := q.query()
	if err != nil {
		return nil, err
	}
	query.Limit = q.Limit
	view := s.crawl(ctx).View()
	if q.Host != "" {
		if err := view.KnowsHost(q.Host); err != nil {
			return nil, err
		}
	}
	if err := view.KnowsSeed(query); err != nil {
		return nil, err
	}
	return s.stream(func(t *Stream) error {
		out := newRows[inspect.URL](t, q.Format, "urls")
		t.w.Header().Set("Trailer", trailerNext)
		t.Begin()
		next, err := view.URLs(ctx, query, out.write)
		if next != nil {
			t.w.Header().Set(trailerNext, next.String())
		}
		return errors.Join(err, out.end())
	}), nil
}

func (s *Server) exportHosts(ctx context.Context, q *exportHostsQuery) (*huma.StreamResponse, error) {
	if d := s.divided(ctx); d != nil {
		return s.stream(func(t *Stream) error {
			out := newRows[inspect.Host](t, q.Format, "hosts")
			return errors.Join(exportHostsOf(ctx, d, out, q), out.end())
		}), nil
	}
	query := inspect.HostQuery{State: string(q.State), Sort: inspect.SortFound, Limit: q.Limit, Under: q.Under,
		Contains: q.Contains}
	return s.stream(func(t *Stream) error {
		out := newRows[inspect.Host](t, q.Format, "hosts")
		t.w.Header().Set("Trailer", trailerMatching)
		t.Begin()
		matching, err := s.crawl(ctx).View().Hosts(ctx, query, out.write)
		t.w.Header().Set(trailerMatching, strconv.Itoa(matching))
		return errors.Join(err, out.end())
	}), nil
}
