//go:build !core

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Leases is what fetchers outside of this process need of a crawl; see crawl.Engine.
type Leases interface {
	Lease(context.Context, remote.Request) ([]remote.Lease, error)
	Extend(ctx context.Context, fetcher string, ids []remote.ID, visibility time.Duration) ([]time.Time, error)
	Report(context.Context, []remote.Report) ([]remote.Result, error)
	Fetchers(context.Context) ([]remote.Fetcher, error)
	CutOff(ctx context.Context, fetcher string) error
	Admit(ctx context.Context, fetcher string) error
	Check(ctx context.Context, urls []weburl.URL, take bool) ([]crawl.URLCheck, error)
}

// leaseRequest is the request for leases.
type leaseRequest struct {
	Body struct {
		Fetcher string  `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$" doc:"the name of the fetcher"`
		N       int     `json:"n,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"leases at most"`
		Wait    float64 `json:"wait,omitempty" minimum:"0" maximum:"300" doc:"seconds to wait for the first one"`
		Seconds float64 `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"60" doc:"until the deadline"`
		Host    string  `json:"host,omitempty" maxLength:"512" doc:"only URLs of this host"`
		PerHost int     `json:"per_host,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"requests to a host in flight at most, where no delay is in force and politeness.per_host allows it"`
		Hosts   int     `json:"hosts,omitempty" minimum:"1" maximum:"1000" doc:"hosts at most; absent: any number"`
	}
}

// Lease is the permission for one request. It is one line of the response.
type Lease struct {
	ID       remote.ID         `json:"id"`
	URL      string            `json:"url"`
	Host     string            `json:"host"`
	Address  string            `json:"address,omitempty"` // the only one to dial, if the fetcher can choose
	Headers  map[string]string `json:"headers"`           // to send
	Depth    int               `json:"depth"`
	Delay    float64           `json:"delay_seconds"` // in force, from the end of this request to the next
	MaxBytes int64             `json:"max_bytes"`     // of the decoded body that are of use
	Deadline time.Time         `json:"deadline"`
	Seconds  float64           `json:"seconds"` // until the deadline
}

func newLease(l *remote.Lease, now time.Time) Lease {
	lease := Lease{
		ID: l.ID, URL: l.URL.String(), Host: l.Host, Headers: make(map[string]string, len(l.Header)),
		Depth: int(l.Depth), Delay: l.Delay.Seconds(), MaxBytes: l.MaxBody, Deadline: l.Deadline.UTC(),
		Seconds: max(l.Deadline.Sub(now), 0).Seconds(),
	}
	if l.Address.IsValid() {
		lease.Address = l.Address.String()
	}
	for name, values := range l.Header {
		lease.Headers[name] = strings.Join(values, ", ")
	}
	return lease
}

// leaseExtension is the request for longer leases.
type leaseExtension struct {
	Body struct {
		Fetcher string      `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`
		IDs     []remote.ID `json:"ids" minItems:"1" maxItems:"1000" nullable:"false"`
		Seconds float64     `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"60" doc:"from now until the deadline"`
	}
}

// oneExtension is the request for a longer lease.
type oneExtension struct {
	ID   remote.ID `path:"id" maxLength:"64"`
	Body struct {
		Fetcher string  `json:"fetcher" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`
		Seconds float64 `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"60" doc:"from now until the deadline"`
	}
}

// extended is the new deadline of a lease.
type extended struct {
	ID       remote.ID `json:"id"`
	Deadline time.Time `json:"deadline,omitzero" doc:"absent: the lease is not out, or not this fetcher's"`
}

// extensions are the new deadlines.
type extensions struct {
	Leases []extended `json:"leases"`
}

// fetcherList is all fetchers.
type fetcherList struct {
	Fetchers []remote.Fetcher `json:"fetchers"`
}

// FetcherPath names a fetcher. It is exported because huma reads only fields of exported types.
type FetcherPath struct {
	Name string `path:"name" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$"`
}

// fetcherDone is the result of a command for a fetcher.
type fetcherDone struct {
	Fetcher string `json:"fetcher"`
	CutOff  bool   `json:"cut_off"`
}

// checkRequest is the request for checks.
type checkRequest struct {
	Body struct {
		URLs []string `json:"urls" minItems:"1" maxItems:"1000" nullable:"false"`
		Take bool     `json:"take,omitempty" doc:"the requests that may be made follow at once: their hosts are charged"`
	}
}

// checkList has one result for each URL.
type checkList struct {
	Results []crawl.URLCheck `json:"results"`
}

// lending has the operations for fetchers outside of the process.
type lending struct {
	s         *Server
	reporting chan struct{} // has one for each request with reports that is read
}

// operation describes an operation that divisions do not have.
func (l *lending) operation(method, path, id, summary string, more ...int) huma.Operation {
	return l.s.onlyWhole(Operation(method, path, id, summary, more...),
		"remote fetchers cannot be used in a cluster yet: its nodes fetch all pages")
}

func leasesAPI(s *Server, api huma.API) {
	(&lending{s, make(chan struct{}, maxReporting)}).register(api)
}

func (l *lending) register(api huma.API) {
	lend := streams[Lease](api, l.operation("POST", "/leases", "leases-take", "Take leases of pages",
		append(bodyErrors(), http.StatusNotFound)...))
	lend.Description =
		"Each line of the response is the permission for one GET request that follows no redirects and " +
			"ends before the deadline. No other request to the host begins until the lease is reported or its " +
			"deadline " +
			"has passed. Without a lease that is due the request waits. The response may have no line."
	Handle(api, lend, func(_ context.Context, in *leaseRequest) (*huma.StreamResponse, error) {
		return l.s.stream(func(t *Stream) error { return l.lend(t, in) }), nil
	})
	extend := l.operation("PATCH", "/leases/{id}", "leases-extend", "Extend a lease", append(bodyErrors(), 404)...)
	Handle(api, extend, func(ctx context.Context, in *oneExtension) (*Object[extended], error) {
		at, err := l.s.crawl(ctx).Extend(ctx, in.Body.Fetcher, []remote.ID{in.ID}, seconds(in.Body.Seconds))
		if err == nil && at[0].IsZero() {
			err = huma.Error404NotFound("the lease is not out, or not this fetcher's")
		}
		if err != nil {
			return nil, err
		}
		return answer(extended{in.ID, at[0].UTC()}, nil)
	})
	all := l.operation("PATCH", "/leases", "leases-extend-all", "Extend leases", bodyErrors()...)
	Handle(api, all, func(ctx context.Context, in *leaseExtension) (*Object[extensions], error) {
		at, err := l.s.crawl(ctx).Extend(ctx, in.Body.Fetcher, in.Body.IDs, seconds(in.Body.Seconds))
		if err != nil {
			return nil, err
		}
		out := extensions{Leases: make([]extended, len(at))}
		for i := range at {
			if out.Leases[i].ID = in.Body.IDs[i]; !at[i].IsZero() {
				out.Leases[i].Deadline = at[i].UTC()
			}
		}
		return answer(out, nil)
	})
	l.reportsAPI(api)
	l.fetchersAPI(api)
	check := l.operation("POST", "/check", "check-urls", "Check whether URLs may be requested now", bodyErrors()...)
	check.Description =
		"By the scope, by the robots.txt in force, and by the delay of their hosts. For requests that " +
			"a page causes, such as those of a browser for images on other hosts."
	Handle(api, check, func(ctx context.Context, in *checkRequest) (*Object[checkList], error) {
		urls := make([]weburl.URL, len(in.Body.URLs))
		for i, text := range in.Body.URLs {
			u, err := weburl.Parse(text)
			if err != nil {
				return nil, errQuery{fmt.Errorf("urls[%d]: %w", i, err)}
			}
			urls[i] = u
		}
		list, err := l.s.crawl(ctx).Check(ctx, urls, in.Body.Take)
		return answer(checkList{list}, err)
	})
}

// lend writes the leases that a fetcher gets. What cannot be written is given back.
func (l *lending) lend(t *Stream, in *leaseRequest) error {
	b := &in.Body
	leases, err := l.s.crawl(t.r.Context()).Lease(t.r.Context(), remote.Request{
		Fetcher: b.Fetcher, N: b.N, Wait: seconds(b.Wait), Visibility: seconds(b.Seconds), Host: b.Host,
		PerHost: b.PerHost, Hosts: b.Hosts,
	})
	if err != nil || len(leases) == 0 {
		return err
	}
	for i := range leases {
		one := newLease(&leases[i], l.s.o.Now())
		err = errors.Join(err, t.Lines.Write(&one))
	}
	if err = errors.Join(err, t.flush()); err == nil {
		return nil
	}
	back := make([]remote.Report, len(leases))
	for i := range leases {
		back[i] = remote.Report{Fetcher: b.Fetcher, ID: leases[i].ID, NotDone: true}
	}
	_, again := l.s.crawl(t.r.Context()).Report(context.WithoutCancel(t.r.Context()), back)
	return errors.Join(err, again)
}

func (l *lending) fetchersAPI(api huma.API) {
	Handle(api, l.operation("GET", "/fetchers", "fetchers-list", "The fetchers of this run, and what they hold"),
		func(ctx context.Context, _ *struct{}) (*Object[fetcherList], error) {
			list, err := l.s.crawl(ctx).Fetchers(ctx)
			return answer(fetcherList{list}, err)
		})
	cutOff := l.operation("DELETE", "/fetchers/{name}", "fetchers-cut-off", "Cut a fetcher off", http.StatusNotFound)
	cutOff.Description =
		"Its requests and reports are refused from now on, also after a restart. Its leases run out at " +
			"their deadlines, since its requests may still be under way."
	Handle(api, cutOff, func(ctx context.Context, in *FetcherPath) (*Object[fetcherDone], error) {
		return answer(fetcherDone{in.Name, true}, l.s.crawl(ctx).CutOff(ctx, in.Name))
	})
	admit := l.operation("POST", "/fetchers/{name}", "fetchers-admit", "Admit a fetcher that is cut off",
		http.StatusNotFound)
	Handle(api, admit, func(ctx context.Context, in *FetcherPath) (*Object[fetcherDone], error) {
		return answer(fetcherDone{in.Name, false}, l.s.crawl(ctx).Admit(ctx, in.Name))
	})
}

// statusOfLending is statusOf of the errors of leases.
func statusOfLending(err error) int {
	switch {
	case errors.Is(err, remote.ErrCutOff):
		return http.StatusForbidden
	case errors.Is(err, remote.ErrLease):
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

// collectFetchers collects the numbers of all fetchers together.
func (s *statusCollector) collectFetchers(to chan<- prometheus.Metric, list []remote.Fetcher) {
	var all remote.Fetcher
	for _, f := range list {
		all.Leases += f.Leases
		all.Reported, all.RanOut, all.NotDone = all.Reported+f.Reported, all.RanOut+f.RanOut, all.NotDone+f.NotDone
	}
	to <- prometheus.MustNewConstMetric(s.fetchers, prometheus.GaugeValue, float64(len(list)))
	to <- prometheus.MustNewConstMetric(s.leases, prometheus.GaugeValue, float64(all.Leases))
	for how, n := range map[string]uint64{"reported": all.Reported, "ran_out": all.RanOut, "not_done": all.NotDone} {
		to <- prometheus.MustNewConstMetric(s.leasesEnded, prometheus.CounterValue, float64(n), how)
	}
}
