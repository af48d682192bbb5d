package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// How many lines a list has where nothing else is asked for.
const (
	defaultHosts = 50
	defaultURLs  = 1000
)

// Trailers of lists.
const (
	trailerMatching = "Amble-Matching" // hosts that the question is for, with those that the limit left out
	trailerNext     = "Amble-Next"     // the position to go on from; absent at the end
)

func (s *Server) hosts(w http.ResponseWriter, r *http.Request) {
	t := s.newStream(w)
	q, err := hostQuery(r.URL.Query())
	if err != nil {
		t.end(errQuery{err})
		return
	}
	w.Header().Set("Trailer", trailerMatching)
	matching, err := s.crawl.View().Hosts(r.Context(), q, func(h *inspect.Host) error { return t.Lines.Write(h) })
	w.Header().Set(trailerMatching, strconv.Itoa(matching))
	t.end(err)
}

func hostQuery(v url.Values) (q inspect.HostQuery, err error) {
	q.State, q.Sort = v.Get("state"), v.Get("sort")
	if q.Limit, err = limitOf(v, defaultHosts); err != nil {
		return q, err
	}
	return q, q.Check()
}

func limitOf(v url.Values, otherwise int) (int, error) {
	text := v.Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the limit is %q, should be a number, and 0 for none", text)
	}
	return n, nil
}

func (s *Server) host(w http.ResponseWriter, r *http.Request) {
	story, err := s.crawl.View().Host(r.Context(), r.PathValue("name"))
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, "application/json", story)
}

func (s *Server) urls(w http.ResponseWriter, r *http.Request) {
	q, err := urlQuery(r.URL.Query(), defaultURLs)
	s.sendURLs(w, r, q, err)
}

// export is urls without a limit.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	q, err := urlQuery(r.URL.Query(), 0)
	s.sendURLs(w, r, q, err)
}

func (s *Server) sendURLs(w http.ResponseWriter, r *http.Request, q inspect.URLQuery, err error) {
	t := s.newStream(w)
	if err != nil {
		t.end(errQuery{err})
		return
	}
	w.Header().Set("Trailer", trailerNext)
	next, err := s.crawl.View().URLs(r.Context(), q, func(u *inspect.URL) error { return t.Lines.Write(u) })
	if next != nil {
		w.Header().Set(trailerNext, next.String())
	}
	t.end(err)
}

func urlQuery(v url.Values, limit int) (q inspect.URLQuery, err error) {
	q.Host = v.Get("host")
	if q.Limit, err = limitOf(v, limit); err != nil {
		return q, err
	}
	if q.From, err = storage.ParsePosition(v.Get("from")); err != nil {
		return q, err
	}
	return q, q.Filter(v.Get("state"), v.Get("reason"))
}

func (s *Server) url(w http.ResponseWriter, r *http.Request) {
	u, err := weburl.Parse(r.URL.Query().Get("url"))
	if err != nil {
		writeError(w, errQuery{err})
		return
	}
	story, err := s.crawl.View().URL(r.Context(), u)
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, "application/json", story)
}
