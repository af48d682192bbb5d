package report

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// view is that of a crawl with a URL in each state, and for each cause that a store knows.
func view(t *testing.T) *inspect.View {
	t.Helper()
	s := testkit.OpenStore(t)
	outcomes := []storage.Outcome{
		{State: storage.Fetched, Status: 200}, {State: storage.Failed, Status: 404, Reason: storage.ReasonStatus},
		{State: storage.Failed, Status: 403, Reason: storage.ReasonWall}, {State: storage.Redirected, Status: 301},
		{State: storage.Denied, Reason: storage.ReasonRobots}, {State: storage.Denied, Reason: storage.ReasonMaze},
		{State: storage.Denied, Reason: storage.ReasonUsage}, {State: storage.Excluded, Reason: storage.ReasonScope},
		{State: storage.Excluded, Reason: storage.ReasonDepth}, {State: storage.Excluded, Reason: storage.ReasonOptOut},
		{State: storage.Excluded, Reason: storage.ReasonOperator},
		{State: storage.Excluded, Reason: storage.ReasonSitemaps}, {State: storage.Denied, Reason: storage.ReasonWall},
	}
	root, diff := testkit.Parse(t, "http://a.test/"), testkit.Parse(t, "http://a.test/?diff=1")
	sums := []byte(`{"outside":7,"deep":5,"types":{"text/html":{"responses":1,"bytes":9}}}`)
	b := storage.Batch{
		Found:   []storage.Found{{URL: root, Fingerprint: s.Fingerprint(root), Seed: true, At: now}},
		Refused: []storage.Refused{{Host: "a.test", Reason: storage.TrapExpensive, URL: diff}},
		Marks:   map[string][]byte{marks.Sums: sums},
	}
	for i := range outcomes[1:] {
		u := testkit.Parse(t, "http://a.test/"+string(rune('a'+i)))
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now, ViaHost: 1, Depth: 1})
	}
	u := testkit.Parse(t, "http://waits.test/")
	b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
	must.Get(s.Commit(&b))(t)
	b = storage.Batch{}
	for i, o := range outcomes {
		o.At = now
		b.Done = append(b.Done, storage.Done{Host: 1, Ordinal: uint32(i), Outcome: o})
	}
	must.Get(s.Commit(&b))(t)
	set := seeds.NewSet(seeds.ModeHost).With([]seeds.Seed{{URL: root}, {URL: testkit.Parse(t, "http://never.test/")}})
	return inspect.New(s, inspect.Options{
		Politeness: func(string) *politeness.Options { o := politeness.DefaultOptions(); return &o },
		Robots:     robots.DefaultOptions(), Tokens: []string{"amble"}, Obey: true,
		Now: func() time.Time { return now }, Seeds: func() *seeds.Set { return set },
	})
}

// TestMake: each URL that was not fetched counts for its cause, and what was counted is in the report.
func TestMake(t *testing.T) {
	r, err := Make(t.Context(), view(t), "not running", false, Options{Limit: 100, Now: now})
	must.Do(t, err)
	causes := map[string]uint64{}
	for _, c := range r.LeftOut.Causes {
		causes[c.Cause] = c.URLs
	}
	for cause, n := range map[string]uint64{
		causeRobots: 1, causeWall: 2, causeMaze: 1, causeUsage: 1, causeScope: 1, causeDepth: 1, causeOptOut: 1,
		causeOperator: 1, causeSitemaps: 1, causeNotReached: 1, "expensive": 1,
	} {
		assert.Equal(t, causes[cause], n, cause)
		if delete(causes, cause); CauseText(cause) == CauseText("calendar") {
			t.Errorf("%s has no text", cause)
		}
	}
	assert.AtMost(t, len(causes), 0, "more causes", causes)
	assert.True(t, r.NotKept.Outside == 7 && r.NotKept.Deep == 5 && r.NotKept.Traps["expensive"] == 1 &&
		r.Types[0].Bytes == 9, "%+v, %+v", r.NotKept, r.Types)
	assert.True(t, r.Broken.Total == 2 && r.Broken.List[0].Via == "http://a.test/" &&
		r.Broken.List[0].Seed == "http://a.test/" && r.Redirects.Total == 1 && r.Failures["status 404"] == 1 &&
		r.URLs["queued"] == 1 && r.Statuses["200"] == 1, "%+v", r)
	want := []Seed{{URL: "http://never.test/", State: "unknown"},
		{URL: "http://a.test/", State: "fetched", Status: 200, Known: 13, Fetched: 1, Failed: 2, Other: 10}}
	s := r.Seeds
	assert.True(t, s.Total == 2 && len(s.List) == 2 && s.List[0] == want[0] && s.List[1] == want[1], "%+v", s)
	r, err = Make(t.Context(), view(t), "", false, Options{Limit: 1, Now: now})
	assert.True(t, err == nil && len(r.Broken.List)+len(r.LeftOut.Hosts)+len(r.Seeds.List) == 3 &&
		r.Broken.Total == 2, "%v: %+v", err, r)
}

// TestCausesOfHosts: a host that waits is left out for what keeps it, and a crawl that runs leaves out no other.
func TestCausesOfHosts(t *testing.T) {
	for _, c := range []struct {
		host  inspect.Host
		runs  bool
		cause string
	}{
		{inspect.Host{State: inspect.HostHeld}, true, causeHeld},
		{inspect.Host{State: inspect.HostWalled, WallKind: "refusal", WallMaker: "Maker"}, true, causeWalled},
		{inspect.Host{State: inspect.HostPaused}, true, causePaused},
		{inspect.Host{State: inspect.HostWaiting, FrontierState: "over budget"}, true, causeBudget},
		{inspect.Host{State: inspect.HostReady, URLs: inspect.Counts{storage.Fetched: 10}}, false, causeBudget},
		{inspect.Host{State: inspect.HostFailing, LastFailure: "connect_timeout"}, true, causeFailing},
		{inspect.Host{State: inspect.HostWaiting, Parked: true}, true, causeFailing},
		{inspect.Host{State: inspect.HostWaiting}, true, ""},
		{inspect.Host{State: inspect.HostWaiting}, false, causeNotReached},
	} {
		m := maker{o: Options{Limit: 9, HostPages: 10}, r: newSummary(), runs: c.runs, causes: map[string]*Cause{},
			hosts: map[string][]*Seed{"a.test": {{State: "queued"}}}}
		c.host.Host, c.host.Waiting = "a.test", 3
		must.Do(t, m.takeHost(&c.host))
		assert.Equal(t, m.hosts["a.test"][0].Reason, c.cause, "its seed waits for")
		got := m.causes[c.cause]
		assert.True(t, (c.cause == "" || got != nil && got.URLs == 3) && len(m.causes) <= 1 &&
			(c.cause != "" || len(m.causes) <= 0), "%+v: %+v", c.host, m.causes)
	}
}

// reported is a crawl that has only a view.
type reported struct {
	server.Crawl
	view *inspect.View
	dir  string
}

func (r reported) Status() crawl.Status {
	return crawl.Status{State: "running", DataDir: r.dir, OutputDir: r.dir}
}
func (r reported) Observe(crawl.Observer) {}
func (r reported) View() *inspect.View    { return r.view }

// TestAPI: the operation has the forms of the command, for clients that may only read, one at a time.
func TestAPI(t *testing.T) {
	c := reported{view: view(t), dir: t.TempDir()}
	write(t, c.dir, "links-000001.jsonl", []byte(link("http://a.test/", "http://a.test/a", "x")))
	a := &API{Now: time.Now}
	a.Parts.Add("one", "One", false, func(context.Context, *server.Server) (string, []string, [][]string, error) {
		return "text", nil, nil, &server.Incomplete{Nodes: []string{"away"}, Shards: []int{}}
	}, nil)
	s := must.Get(server.Start(server.Options{Listen: "127.0.0.1:0", DataDir: c.dir, Now: time.Now, Token: "full",
		ReadToken: "read", Operations: []server.Operations{a.Register}}, c))(t)
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	get := func(path string) (int, http.Header, string) {
		q := must.Get(http.NewRequest(http.MethodGet, "http://"+s.Address()+server.BasePath+path, nil))(t)
		q.Header.Set("Authorization", "Bearer read")
		response := must.Get(http.DefaultClient.Do(q))(t)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		assert.NoError(t, err)
		return response.StatusCode, response.Header, string(body)
	}
	var r Summary
	status, _, body := get("/report")
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != 200 || r.State != "running" ||
		r.Broken.List[0].From[0].Text != "x" || len(r.Parts) != 1 || !r.Output.Links ||
		r.Incomplete == nil || !slices.Equal(r.Incomplete.Nodes, []string{"away"}) {
		t.Errorf("%d, %v: %s", status, err, body)
	}
	status, header, body := get("/report?format=html")
	if !strings.HasPrefix(body, "<!doctype html>") || !strings.HasPrefix(header.Get("Content-Type"), "text/html") ||
		!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d, %v: %.200s", status, header, body)
	}
	_, _, body = get("/report?format=csv&table=seeds&limit=1")
	assert.True(t, strings.Count(body, "\n") == 2, "%v", body)
	for _, bad := range []string{"?format=pdf", "?limit=0", "?limit=10001", "?table=x", "?unknown=1"} {
		status, _, body := get("/report" + bad)
		assert.True(t, status == 422, "%s: %d, %s", bad, status, body)
	}
	a.making.Lock() // as while one is made
	defer a.making.Unlock()
	if status, _, body := get("/report"); status != 503 || !strings.Contains(body, "another report") {
		t.Errorf("a second report at a time: %d, %s", status, body)
	}
}
