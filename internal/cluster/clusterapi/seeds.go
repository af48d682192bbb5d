//go:build !core

package clusterapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// reloadTimeout is how long ReloadSeeds takes at most.
const reloadTimeout = 10 * time.Minute

// ReloadSeeds is [crawl.Engine.ChangeSeeds] of a division. Each request is a change of its own: if it ends in the
// middle, another reload goes on with it.
func ReloadSeeds(ctx context.Context, d server.Division, w crawl.SeedWish) (crawl.SeedCounts, error) {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	send := func(method string, v url.Values, body []byte) (*http.Response, error) {
		r := server.Read("/seeds", v)
		r.Method, r.Kind, r.Body = method, "text/plain", body
		return server.AskShard(ctx, d, 0, r)
	}
	if w.Settings {
		named := make(map[string]bool, len(w.Add))
		for i := range w.Add {
			named[w.Add[i].URL.String()] = true
		}
		response, err := send(http.MethodGet, nil, nil)
		if err == nil {
			_, err = server.Lines(response, func(e *server.SeedEntry) error {
				if u, err := weburl.Parse(e.URL); err == nil && e.Settings && e.Of == "" && !named[e.URL] {
					w.Remove = append(w.Remove, u)
				}
				return nil
			}, server.Unanswered)
		}
		if err != nil {
			return crawl.SeedCounts{}, fmt.Errorf("list the seeds: %w", err)
		}
	}
	return server.SendSeeds(&w, send)
}
