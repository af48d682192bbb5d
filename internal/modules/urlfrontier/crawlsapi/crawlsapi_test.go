package crawlsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// twoCrawls are an open crawl and a closed one.
type twoCrawls struct{}

func (twoCrawls) Overviews(context.Context) ([]crawl.Overview, error) {
	tally := crawl.Tally{URLs: map[string]int{"fetched": 3}, Hosts: 1, Requests: 4}
	return []crawl.Overview{
		{ID: "DEFAULT", Open: true, State: "running", Tally: tally},
		{ID: "a/b", Open: true, State: "running", Tally: tally},
		{ID: "c"},
	}, nil
}

func (twoCrawls) StatusOf(_ context.Context, id string) (crawl.Status, error) {
	if id != "a/b" {
		return crawl.Status{}, fmt.Errorf("no crawl: %w", inspect.ErrUnknown)
	}
	return crawl.Status{State: "running", Hosts: 7}, nil
}

// observed is the crawl DEFAULT.
type observed struct{ server.Crawl }

func (observed) Observe(crawl.Observer) {}

func (observed) Status() crawl.Status { return crawl.Status{} }

// start starts an API with some operations.
func start(t *testing.T, operations ...server.Operations) *server.Server {
	t.Helper()
	s := must.Get(server.Start(server.Options{Listen: "127.0.0.1:0", DataDir: t.TempDir(), Now: time.Now,
		Operations: operations}, observed{}))(t)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

// TestCrawls: the crawls of a process are listed with their sums, and each has its status, whatever
// its id. With one crawl there is no such list.
func TestCrawls(t *testing.T) {
	get := func(s *server.Server, path string) (int, map[string]any) {
		t.Helper()
		response := must.Get(http.Get("http://" + s.Address() + path))(t)
		defer response.Body.Close()
		var body map[string]any
		_ = json.NewDecoder(response.Body).Decode(&body) // not JSON: nil
		return response.StatusCode, body
	}
	s := start(t, func(_ *server.Server, api huma.API) { Register(twoCrawls{}, api) })
	status, body := get(s, "/api/v1/crawls")
	total, _ := body["total"].(map[string]any)
	urls, _ := total["urls"].(map[string]any)
	list, _ := body["crawls"].([]any)
	assert.True(t, status == 200 && len(list) == 3 && urls["fetched"] == 6.0 && total["requests"] == 8.0, "%d %v",
		status, body)
	if status, body := get(s, "/api/v1/crawls/a%2Fb"); status != 200 || body["hosts"] != 7.0 {
		t.Errorf("%d %v", status, body)
	}
	if status, _ := get(s, "/api/v1/crawls/none"); status != 404 {
		t.Errorf("an unknown crawl: %d", status)
	}
	if status, _ := get(start(t), "/api/v1/crawls"); status != 404 {
		t.Errorf("with one crawl: %d", status)
	}
}
