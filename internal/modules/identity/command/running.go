//go:build !core

package command

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/identity/lookup"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// running is the crawl of a look-up, by its API: also that of a cluster, and of another process.
type running struct{ *server.Client }

// Visits implements lookup.Crawl.
func (r running) Visits(ctx context.Context, host string, since time.Time, each func(*lookup.Visit) error) error {
	_, err := server.EachLine(ctx, r.Client, server.BasePath+"/audit",
		url.Values{"host": {host}, "since": {since.Format(time.RFC3339)}}, each)
	return err
}

// fetchPriority puts the file of a proof before the pages of its host.
const fetchPriority = 100

// Fetch implements lookup.Crawl.
func (r running) Fetch(ctx context.Context, u weburl.URL) error {
	list := r.Send(ctx, true, func(string) {})
	if err := list.Add(crawl.Addition{URL: u, Priority: fetchPriority}); err != nil {
		return err
	}
	return list.Finish()
}

// SetDelay implements lookup.Crawl.
func (r running) SetDelay(ctx context.Context, host string, d time.Duration) error {
	return r.Command(ctx, http.MethodPost, "/hosts/"+url.PathEscape(host)+"/delay",
		map[string]float64{"seconds": d.Seconds()}, nil)
}
