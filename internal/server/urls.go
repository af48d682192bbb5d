package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// URLFilter says which URLs are wanted. It is exported because only fields of exported types are read.
type URLFilter struct {
	Host   string     `query:"host" maxLength:"512" doc:"only URLs of this host"`
	State  string     `query:"state" enum:"queued,fetched,redirected,failed,denied,excluded,retrying" doc:"only URLs in this state"`
	Reason ReasonName `query:"reason" doc:"only URLs that are in their state for this reason"`
	From   string     `query:"from" maxLength:"32" pattern:"^([1-3]?[0-9]{1,9}[.][1-3]?[0-9]{1,9})?$" doc:"go on from here: next of the page before" example:"12.340"`
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

// urlsQuery asks for a page of URLs.
type urlsQuery struct {
	URLFilter
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"URLs of a page at most"`
}

// urlQuery names a URL.
type urlQuery struct {
	URL string `query:"url" required:"true" maxLength:"2048" doc:"the URL, in any form"`
}

// maxExamined is how many URLs are looked at for one page.
const maxExamined = 10_000

func (s *Server) urlsAPI(api huma.API) {
	list := operation("GET", "/urls", "urls-list", "URLs, a page at a time", http.StatusNotFound)
	list.Description = "Host by host in the order in which they were found. A page ends with the limit, or after a bounded number of URLs was looked at, and may be empty: it is the last one where next is missing."
	handle(api, list, s.listURLs)
	handle(api, operation("GET", "/url", "urls-one", "All that is known of a URL, and what would become of it", http.StatusNotFound), s.tellURL)
	s.addAPI(api)
	s.retryAPI(api)
}

func (s *Server) listURLs(ctx context.Context, q *urlsQuery) (*object[inspect.URLPage], error) {
	query, err := q.query()
	if err != nil {
		return nil, err
	}
	query.Limit, query.Examine = q.Limit, maxExamined
	return answer(s.crawl.View().URLPage(ctx, query))
}

func (s *Server) tellURL(ctx context.Context, q *urlQuery) (*object[inspect.URLStory], error) {
	u, err := weburl.Parse(q.URL)
	if err != nil {
		return nil, errQuery{err}
	}
	return answer(s.crawl.View().URL(ctx, u))
}
