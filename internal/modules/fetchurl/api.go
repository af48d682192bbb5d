//go:build !core

package fetchurl

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// hold is for how long a request of the API waits for the turn of its URL.
const hold = 15 * time.Second

// wanted is the request of the operation.
type wanted struct {
	Body struct {
		URL string `json:"url" minLength:"1" maxLength:"2048" doc:"the URL to fetch"`
	}
}

// Register registers the operation.
func Register(s *server.Server, api huma.API) {
	op := server.Operation("POST", "/fetch", "fetch-url", "Fetch a URL now, and show all that is learned of it",
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusConflict)
	op.Description = "The request has its turn in the queue of its host, before its other URLs: after the delay in " +
		"force, after its robots.txt was read, and only if that allows it. It waits 15 seconds for that; then the " +
		"outcome is waiting, and the same request again goes on. The URL need not be in scope, does not become a URL " +
		"of the crawl, and its links are not followed. A redirect is reported and not followed."
	server.HandleOfURL(s, api, op, func(in *wanted) string { return in.Body.URL },
		func(ctx context.Context, c server.Crawl, in *wanted) (*FetchedURL, error) {
			u, err := weburl.Parse(in.Body.URL)
			if err != nil {
				return nil, huma.Error422UnprocessableEntity(err.Error())
			}
			if c.Status().State == "paused" {
				return nil, huma.Error409Conflict("the crawl is paused: nothing is requested until it is resumed")
			}
			return Once(ctx, c, u, hold)
		})
}

// Once fetches a URL by a running crawl. After wait without a request the outcome is Waiting.
func Once(ctx context.Context, c server.Crawl, u weburl.URL, wait time.Duration) (*FetchedURL, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	x := &crawl.Visit{URL: u}
	switch err := c.Visit(waiting, x); {
	case err != nil && waiting.Err() != nil && ctx.Err() == nil:
		return stillWaiting(ctx, c, u), nil
	case errors.Is(err, crawl.ErrVisits):
		return nil, huma.Error503ServiceUnavailable(err.Error())
	case err != nil:
		return nil, err
	}
	return NewReport(x)
}

// stillWaiting says what a URL waits for.
func stillWaiting(ctx context.Context, c server.Crawl, u weburl.URL) *FetchedURL {
	r := &FetchedURL{URL: u.String(), Outcome: Waiting, Reason: "its host may not be requested from yet"}
	if h, err := c.View().Host(ctx, u.Host()); err == nil {
		r.Until = h.Politeness.Until
		r.Reason += ": " + h.Politeness.Text
	}
	return r
}
