package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/routes"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/audit/auditapi"
	"github.com/amble-crawler/amble/internal/modules/plan"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// settings are settings that take every change.
type settings struct{}

func (settings) Settings() []server.Setting { return nil }

func (settings) Change(context.Context, []byte) ([]string, error) {
	return []string{"crawl.workers"}, nil
}

func (settings) Reload(context.Context, bool) (server.SettingsChange, error) {
	return server.SettingsChange{}, nil
}

// send sends a request. Of an endless response it reads the beginning.
func send(t *testing.T, s *server.Server, method, path, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Address()+path, strings.NewReader(body))
	must.Do(t, err)
	switch {
	case path == "/api/v1/urls" || path == "/api/v1/reports":
		r.Header.Set("Content-Type", server.JSONLines)
	case body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	must.Do(t, err)
	defer response.Body.Close()
	if path == "/api/v1/events" {
		beginning := make([]byte, 4<<10)
		for n := 0; !strings.Contains(text, "event: status"); text = string(beginning[:n]) {
			more, err := response.Body.Read(beginning[n:])
			if n += more; err != nil {
				t.Fatal(err)
			}
		}
		return response.StatusCode, text
	}
	all, err := io.ReadAll(response.Body)
	must.Do(t, err)
	return response.StatusCode, string(all)
}

// soleNode is a node whose cluster has two shards, and whose other node never answers.
type soleNode struct {
	Node
	deleted *[]cluster.Shard // of the deletion that waits
}

func (n soleNode) AddDeletion(_ context.Context, o crawl.Deletion, shards []cluster.Shard) error {
	if n.deleted == nil || o.Before.IsZero() {
		return storage.ErrLogDown
	}
	*n.deleted = shards
	return nil
}

func (soleNode) SetOptOut(context.Context, optout.Entry, bool) (bool, uint64, error) {
	return true, 7, nil
}

func (soleNode) SetPaused(context.Context, bool) (uint64, error) { return 7, nil }

func (soleNode) Survey(context.Context) (*membership.Survey, []journal.Report, error) {
	return nil, nil, storage.ErrLogDown
}

func (soleNode) DesiredSequence() uint64 { return 7 }

func (soleNode) Observe(crawl.Observer) {}

func (soleNode) Serve(ctx context.Context, _ http.Handler) { <-ctx.Done() }

func (soleNode) Statuses() map[cluster.Shard]crawl.Status { return nil }

func (soleNode) Refused() uint64 { return 0 }

func (soleNode) Erasing(*membership.Survey) []membership.Erasing { return nil }

func (soleNode) Status() membership.Status {
	return membership.Status{Cluster: "web", Node: "a", Members: []membership.MemberStatus{
		{Node: "a", State: "live"}, {Node: "b", State: "live", Shards: 1}, {Node: "c", State: "left"},
	}, Shards: []cluster.ShardStatus{{Owner: "b"}, {}}}
}

func (soleNode) Shards() int { return 2 }

func (soleNode) Owner(s cluster.Shard) string { return []string{"b", ""}[s] }

func (soleNode) Do(node string, _ *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("node %s: %w", node, routes.ErrUnreachable)
}

// startNode starts the API of a soleNode.
func startNode(t *testing.T) *server.Server { return startSole(t, soleNode{}) }

func startSole(t *testing.T, n Node) *server.Server {
	t.Helper()
	dir := t.TempDir()
	s, err := server.Start(server.Options{Listen: "127.0.0.1:0", DataDir: dir, Now: time.Now,
		Division: New(n, dir, time.Now), Settings: settings{},
		Operations: []server.Operations{auditapi.Register, plan.Register}}, nil)
	must.Do(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close(context.Background()))
	})
	return s
}

// takenOver is a node whose cluster has one shard. Its owner is cut off, and another takes it after some time.
type takenOver struct {
	soleNode
	at time.Time
}

func (n takenOver) Owner(cluster.Shard) string {
	if time.Now().Before(n.at) {
		return "b"
	}
	return "a"
}

func (n takenOver) Do(node string, r *http.Request) (*http.Response, error) {
	if node == "b" {
		<-r.Context().Done()
		return nil, routes.ErrUnreachable
	}
	body := io.NopCloser(strings.NewReader(`{"added":1,"done":true}`))
	return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
}

// TestAddWhileTakenOver: a list waits for the next owner of a shard, and not for the one that is cut off.
func TestAddWhileTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := New(takenOver{at: start.Add(5 * time.Second)}, "", time.Now).NewImport(crawl.ImportOptions{}, false)
		u := must.Get(weburl.Parse("http://example.com/"))(t)
		must.Do(t, errors.Join(d.Add(crawl.Addition{URL: u}), d.Commit(t.Context())))
		if took := time.Since(start); d.Sum().Added != 1 || took > 6*time.Second {
			t.Errorf("%+v after %v", d.Sum(), took)
		}
	})
}

// gone is a node that has left its cluster while requests to its API are under way: it knows nothing any more.
type gone struct{ soleNode }

func (gone) Status() membership.Status { return membership.Status{Cluster: "web", Node: "a"} }

func (gone) Owner(cluster.Shard) string { return "" }

// TestNodeHasLeft: a request that a node can divide no more gets an error, and so does a list.
func TestNodeHasLeft(t *testing.T) {
	t.Parallel()
	s := startSole(t, gone{})
	for _, q := range [][2]string{{"GET", "/export"}, {"GET", "/hosts/x.example"}, {"POST", "/hosts/x.example/pause"}} {
		status, body := send(t, s, q[0], "/api/v1"+q[1], "")
		assert.True(t, status == http.StatusServiceUnavailable, "%v: %d %s", q, status, body)
	}
	_, body := send(t, s, "GET", "/api/v1/hosts", "")
	assert.True(t, strings.Contains(body, `"incomplete":{"shards":[0,1]`), "%v", body)
}

// TestListWhileNodeLeaves: a list gets an error if its node leaves the cluster meanwhile.
func TestListWhileNodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(gone{}, "", time.Now).NewImport(crawl.ImportOptions{}, false)
		u, err := weburl.Parse("http://example.com/")
		if err == nil {
			err = d.Add(crawl.Addition{URL: u})
		}
		must.Do(t, err)
		if err := d.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), errNoOwner.Error()) {
			t.Errorf("the list is committed: %v", err)
		}
	})
}

// operations are requests for every operation of the API, with what comes of them on a soleNode: a part of the answer,
// or a status.
func operations() map[string]struct {
	method, path, body string
	want               any
} {
	const lacks = `"incomplete":{`
	type op = struct {
		method, path, body string
		want               any
	}
	const host, page = "/hosts/x.example", "http://x.example/"
	return map[string]op{
		"crawl-status":  {"GET", "/status", "", lacks},
		"crawl-history": {"GET", "/history", "", lacks},
		"crawl-pause":   {"POST", "/crawl/pause", "", lacks},
		"crawl-resume":  {"POST", "/crawl/resume", "", lacks},
		"crawl-drain":   {"POST", "/crawl/drain", "", 501},
		"crawl-stop":    {"POST", "/crawl/stop", "", 501},
		"crawl-events":  {"GET", "/events", "", lacks},
		"cluster-show":  {"GET", "/cluster", "", 503},

		"hosts-list":   {"GET", "/hosts", "", lacks},
		"hosts-one":    {"GET", host, "", 503},
		"hosts-pause":  {"POST", host + "/pause", "", 503},
		"hosts-resume": {"POST", host + "/resume", "", 503},
		"hosts-delay":  {"POST", host + "/delay", `{"seconds":1}`, 503},
		"hosts-forget": {"POST", host + "/forget", "", 503},
		"hosts-drop":   {"POST", host + "/drop", "", 503},

		"urls-list":    {"GET", "/urls", "", lacks},
		"urls-one":     {"GET", "/url?url=" + page, "", 503},
		"urls-add":     {}, // it waits a minute: see TestListWhileNodeLeaves
		"urls-retry":   {"POST", "/urls/retry", `{"states":["failed"]}`, "give it again"},
		"urls-drop":    {"POST", "/urls/drop", `{"states":["failed"]}`, "give it again"},
		"urls-delete":  {"POST", "/urls/delete", `{"all":true}`, lacks},
		"export-urls":  {"GET", "/export", "", 503},
		"export-hosts": {"GET", "/export/hosts", "", 503},

		"robots-text":  {"GET", "/robots?origin=" + page, "", 503},
		"robots-check": {"GET", "/robots/check?url=" + page, "", 503},
		"plan-show":    {"GET", "/plan", "", lacks},
		"audit":        {"GET", "/audit", "", 503},
		"backup":       {"GET", "/backup", "", 501},

		"seeds-list":     {"GET", "/seeds", "", 503},
		"seeds-add":      {"POST", "/seeds", page + "\n", 503},
		"seeds-remove":   {"DELETE", "/seeds?url=" + page, "", 503},
		"optouts-list":   {"GET", "/optouts", "", lacks},
		"optouts-add":    {"POST", "/optouts", `{"scope":"host","value":"x.example"}`, lacks},
		"optouts-remove": {"DELETE", "/optouts?scope=host&value=x.example", "", 503},
		"config-show":    {"GET", "/config", "", "{"},
		"config-change":  {"PATCH", "/config", `{"crawl":{"workers":2}}`, lacks},
		"config-reload":  {"POST", "/config/reload", "", lacks},

		"leases-take":       {"POST", "/leases", `{"fetcher":"f"}`, 501},
		"leases-extend":     {"PATCH", "/leases/1", `{"fetcher":"f"}`, 501},
		"leases-extend-all": {"PATCH", "/leases", `{"fetcher":"f","ids":["1"]}`, 501},
		"leases-report":     {"POST", "/leases/1", `{"fetcher":"f"}`, 501},
		"leases-report-all": {"POST", "/reports", `{"id":"1","fetcher":"f"}`, 501},
		"check-urls":        {"POST", "/check", `{"urls":["` + page + `"]}`, 501},
		"fetchers-list":     {"GET", "/fetchers", "", 501},
		"fetchers-cut-off":  {"DELETE", "/fetchers/f", "", 501},
		"fetchers-admit":    {"POST", "/fetchers/f", "", 501},
	}
}

// TestEveryOperation: nothing that another node would have to answer is answered in its place, and every operation
// says so, or that a cluster does not have it.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	s := startSole(t, soleNode{deleted: new([]cluster.Shard)})
	all := operations()
	var described struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	_, body := send(t, s, "GET", "/api/v1/openapi.json", "")
	must.Do(t, json.Unmarshal([]byte(body), &described))
	for path, item := range described.Paths {
		for _, op := range item {
			q, known := all[op.ID]
			if !known {
				t.Errorf("%s: nothing says what %s does in a cluster", path, op.ID)
				continue
			}
			if delete(all, op.ID); q.path == "" {
				continue
			}
			t.Run(op.ID, func(t *testing.T) {
				t.Parallel()
				status, body := send(t, s, q.method, "/api/v1"+q.path, q.body)
				switch want := q.want.(type) {
				case string:
					assert.True(t, status == http.StatusOK && strings.Contains(body, want), "%d %s", status, body)
				case int:
					assert.Equal(t, status, want, body)
				}
			})
		}
	}
	for id := range all {
		t.Errorf("there is no operation %s", id)
	}
}

// TestNobodyAnswers: nothing that the other node would have to answer is answered in its place.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := startNode(t)
	_, body := send(t, s, "GET", "/api/v1/status", "")
	for _, want := range []string{
		`"nodes":["a","b"]`, `"shards":[0,1]`, "node b: the node cannot be reached", `"cluster":"web"`,
	} {
		assert.Contains(t, body, want, "is not in")
	}
}

// TestCommandsForAbsent: a command that the other node would have to carry out is recorded, and the answer says that
// it is not carried out yet. Without a record it is refused.
func TestCommandsForAbsent(t *testing.T) {
	t.Parallel()
	var waits []cluster.Shard
	s := startSole(t, soleNode{deleted: &waits})
	for _, q := range [][3]string{
		{"POST", "/optouts", `{"scope":"host","value":"x.example"}`},
		{"PATCH", "/config", `{"crawl":{"workers":2}}`},
		{"POST", "/urls/delete", `{"all":true}`},
	} {
		status, body := send(t, s, q[0], "/api/v1"+q[1], q[2])
		assert.True(t, status == http.StatusOK && strings.Contains(body, `"incomplete":{`) &&
			strings.Contains(body, "node b: the node cannot be reached"), "%v: %d %s", q, status, body)
	}
	assert.Slice(t, waits, []cluster.Shard{0, 1}, "the deletion waits for")
	status, body := send(t, startNode(t), "POST", "/api/v1/urls/delete", `{"all":true}`)
	assert.True(t, status == http.StatusServiceUnavailable && strings.Contains(body, "give it again"), "%d %s", status,
		body)
}
