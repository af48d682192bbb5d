package server

import (
	"context"
	"fmt"
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
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// hostsQuery selects a page of hosts.
type hostsQuery struct {
	State    string `query:"state" enum:"idle,ready,busy,waiting,trouble,held,paused" doc:"only hosts in this state"`
	Sort     string `query:"sort" enum:"waiting,urls,requests,bytes,delay,finish,next,name,found" doc:"the order: numbers largest first, next soonest first, name by the labels from the right, found in the order of discovery; default: waiting, or name with under and contains"`
	Limit    int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"hosts of a page"`
	After    string `query:"after" maxLength:"24576" doc:"next of the previous page"`
	Under    string `query:"under" maxLength:"512" doc:"only this domain and the hosts below it, by name"`
	Contains string `query:"contains" maxLength:"512" doc:"only hosts with this in their name, by name; a page ends after a bounded number of names was inspected, and may be empty"`
}

// HostPath names a host. It is exported because huma reads only fields of exported types.
type HostPath struct {
	Host string `path:"host" maxLength:"512" doc:"its name"`
}

func (s *Server) hostsAPI(api huma.API) {
	handle(api, operation("GET", "/hosts", "hosts-list", "Hosts, a page at a time"), s.listHosts)
	handle(api, operation("GET", "/hosts/{host}", "hosts-one", "Everything known of a host", http.StatusNotFound),
		func(ctx context.Context, q *HostPath) (*object[inspect.HostStory], error) {
			return answer(s.crawl(ctx).View().Host(ctx, q.Host))
		})
}

func (s *Server) listHosts(ctx context.Context, q *hostsQuery) (*object[hostsOfAll], error) {
	if q.Sort == "" {
		q.Sort = "waiting"
		if q.Under != "" || q.Contains != "" {
			q.Sort = "name"
		}
	}
	page, err := s.crawl(ctx).View().HostPage(ctx, inspect.HostQuery{
		State: q.State, Sort: q.Sort, Limit: q.Limit, After: q.After, Under: q.Under, Contains: q.Contains,
	})
	return answer(hostsOfAll{HostPage: page}, err)
}

// URLFilter selects URLs. It is exported because huma reads only fields of exported types.
type URLFilter struct {
	Host   string     `query:"host" maxLength:"512" doc:"only URLs of this host"`
	State  string     `query:"state" enum:"queued,fetched,redirected,failed,denied,excluded,retrying" doc:"only URLs in this state"`
	Reason ReasonName `query:"reason" doc:"only URLs that are in their state for this reason"`
	From   string     `query:"from" maxLength:"32" pattern:"^([1-3]?[0-9]{1,9}[.][1-3]?[0-9]{1,9})?$" doc:"continue from here: next of the previous page" example:"12.340"`
}

func (f *URLFilter) query() (q inspect.URLQuery, err error) {
	q.Host = f.Host
	if q.From, err = storage.ParsePosition(f.From); err == nil {
		err = q.Filter(f.State, string(f.Reason))
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

// urlQuery names a URL.
type urlQuery struct {
	URL string `query:"url" required:"true" maxLength:"2048" doc:"the URL, in any form"`
}

// maxExamined is how many URLs are inspected for one page.
const maxExamined = 10_000

func (s *Server) urlsAPI(api huma.API) {
	list := operation("GET", "/urls", "urls-list", "URLs, a page at a time", http.StatusNotFound)
	list.Description = "Host by host in the order of discovery. A page ends with the limit, or after a bounded " +
		"number of URLs was inspected, and may be empty: it is the last one if next is missing."
	handle(api, list, s.listURLs)
	handle(api, operation("GET", "/url", "urls-one", "Everything known of a URL, and what would become of it",
		http.StatusNotFound), s.showURL)
	s.addAPI(api)
	s.retryAPI(api)
}

func (s *Server) listURLs(ctx context.Context, q *urlsQuery) (*object[urlsOfAll], error) {
	query, err := q.query()
	if err != nil {
		return nil, err
	}
	query.Limit, query.Examine = q.Limit, maxExamined
	page, err := s.crawl(ctx).View().URLPage(ctx, query)
	return answer(urlsOfAll{URLPage: page}, err)
}

func (s *Server) showURL(ctx context.Context, q *urlQuery) (*object[inspect.URLStory], error) {
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

func (s *Server) robotsAPI(api huma.API) {
	handle(api, operation("GET", "/robots", "robots-text",
		"The robots.txt of an origin in force, and its earlier versions"),
		func(ctx context.Context, q *robotsQuery) (*object[inspect.RobotsText], error) {
			u, err := weburl.Parse(q.Origin)
			if err != nil {
				return nil, errQuery{err}
			}
			return answer(s.crawl(ctx).View().RobotsText(u.Origin()))
		})
	check := operation("GET", "/robots/check", "robots-check", "What robots.txt says about URLs")
	check.Description = "By the stored robots.txt of each origin. Nothing is fetched: if no robots.txt was read " +
		"yet, nothing is allowed yet."
	handle(api, check, func(ctx context.Context, q *robotsCheckQuery) (*object[robotsChecks], error) {
		urls := make([]weburl.URL, 0, len(q.URLs))
		for _, text := range q.URLs {
			u, err := weburl.Parse(text)
			if err != nil {
				return nil, errQuery{fmt.Errorf("%q: %w", text, err)}
			}
			urls = append(urls, u)
		}
		list, err := s.crawl(ctx).View().CheckRobots(urls)
		return answer(robotsChecks{list}, err)
	})
}

// planQuery has the parameters of the recrawl plan.
type planQuery struct {
	Hosts int `query:"hosts" minimum:"0" maximum:"1000" default:"20" doc:"how many of the hosts with the most pages are listed"`
}

func (s *Server) planAPI(api huma.API) {
	handle(api, operation("GET", "/plan", "plan-show", "What will be recrawled, and how fresh the copies are"),
		func(ctx context.Context, q *planQuery) (*object[planOfAll], error) {
			plan, err := s.crawl(ctx).View().RecrawlPlan(ctx, q.Hosts)
			return answer(planOfAll{RecrawlPlan: plan}, err)
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
	Limit int `query:"limit" minimum:"0" default:"0" doc:"at most this many; 0: all"`
}

// exportHostsQuery selects any number of hosts.
type exportHostsQuery struct {
	State string `query:"state" enum:"idle,ready,busy,waiting,trouble,held,paused" doc:"only hosts in this state"`
	Limit int    `query:"limit" minimum:"0" default:"0" doc:"at most this many; 0: all"`
}

func (s *Server) exportAPI(api huma.API) {
	urls := streams[inspect.URL](api, operation("GET", "/export", "export-urls", "Every URL as JSON lines",
		http.StatusNotFound))
	urls.Description = "Walks over the whole database, in short steps, while the crawl continues. If the limit " +
		"ended it, the trailer " + trailerNext + " has the position to continue from."
	handle(api, urls, s.exportURLs)
	hosts := streams[inspect.Host](api,
		operation("GET", "/export/hosts", "export-hosts", "Every host as JSON lines, in the order of discovery"))
	hosts.Description = "The trailer " + trailerMatching + " has their number."
	handle(api, hosts, s.exportHosts)
}

func (s *Server) exportURLs(ctx context.Context, q *exportQuery) (*huma.StreamResponse, error) {
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
	return s.stream(func(t *stream) error {
		t.w.Header().Set("Trailer", trailerNext)
		t.begin()
		next, err := view.URLs(ctx, query, func(u *inspect.URL) error { return t.Lines.Write(u) })
		if next != nil {
			t.w.Header().Set(trailerNext, next.String())
		}
		return err
	}), nil
}

func (s *Server) exportHosts(ctx context.Context, q *exportHostsQuery) (*huma.StreamResponse, error) {
	query := inspect.HostQuery{State: q.State, Sort: inspect.SortFound, Limit: q.Limit}
	return s.stream(func(t *stream) error {
		t.w.Header().Set("Trailer", trailerMatching)
		t.begin()
		matching, err := s.crawl(ctx).View().Hosts(ctx, query, func(h *inspect.Host) error { return t.Lines.Write(h) })
		t.w.Header().Set(trailerMatching, strconv.Itoa(matching))
		return err
	}), nil
}

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

func (s *Server) auditAPI(api huma.API) {
	op := streams[audit.Line](api, operation("GET", "/audit", "audit",
		"Every request, and the limits it was checked against"))
	op.Description = "Reads the request log to its end, which takes time for a long log: " +
		"only one audit runs at a time. " +
		"The trailer " + trailerViolations + " has the number of violations, and " + trailerDamaged +
		" that of the parts of the log that could not be read: nothing is proven about those. " + trailerIncomplete +
		" lists the nodes of a cluster that have not answered to the end."
	handle(api, op, func(ctx context.Context, q *auditQuery) (*huma.StreamResponse, error) {
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
	report, err := audit.RunAll(ctx, logs, o)
	t.w.Header().Set(trailerViolations, strconv.FormatUint(report.Counts.Violations, 10))
	t.w.Header().Set(trailerDamaged, strconv.Itoa(len(report.Damaged)))
	return err
}

// audited returns the request log of a crawl, or those of all shards that this node has ever had, and the opt-outs.
func (s *Server) audited(ctx context.Context) (logs [][]string, list []crawl.OptOut, err error) {
	if c := s.crawl(ctx); c != nil {
		list, err = c.OptOuts()
		return [][]string{{filepath.Join(s.dataDir(ctx), requestlog.DirName)}}, list, err
	}
	dirs, err := filepath.Glob(filepath.Join(s.o.DataDir, "shards", "*", requestlog.DirName))
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		logs = append(logs, []string{dir})
	}
	all, err := s.optOutsOfAll(ctx, read("/optouts", nil))
	return logs, all.OptOuts, err
}

// trailerIncomplete says which nodes are not in an audit.
const trailerIncomplete = "Amble-Incomplete"

// auditAll writes the audits of all nodes, one after the other.
func (s *Server) auditAll(w http.ResponseWriter, r *http.Request) {
	t := s.newStream(w, r)
	w.Header().Set("Trailer", trailerViolations+", "+trailerDamaged+", "+trailerIncomplete)
	failed := make(map[string]error)
	var violations, damaged uint64
	for _, node := range s.members() {
		trailer, err := s.auditNode(r.Context(), t, node, partOf(r, nil))
		if isWrong(err) || r.Context().Err() != nil {
			t.end(err)
			return
		}
		if err != nil {
			failed[node] = err
			continue
		}
		more, _ := strconv.ParseUint(trailer.Get(trailerViolations), 10, 64) // the node counts them
		violations += more
		more, _ = strconv.ParseUint(trailer.Get(trailerDamaged), 10, 64)
		damaged += more
	}
	if len(failed) == len(s.members()) && !t.begun {
		t.end(s.unknown(nil, failed))
		return
	}
	t.begin()
	w.Header().Set(trailerViolations, strconv.FormatUint(violations, 10))
	w.Header().Set(trailerDamaged, strconv.FormatUint(damaged, 10))
	if len(failed) > 0 {
		w.Header().Set(trailerIncomplete, strings.Join(sortedKeys(failed), ", "))
	}
	t.end(nil)
}

// auditNode writes the audit of a node, and returns its trailer.
func (s *Server) auditNode(ctx context.Context, t *stream, node string, p part) (http.Header, error) {
	response, err := s.toNode(ctx, node, &p)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = copyLines(t, response.Body)
	return response.Trailer, err
}
