package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/membership"
	"github.com/amble-crawler/amble/internal/optout"
	"github.com/amble-crawler/amble/internal/routes"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// soleNode is a node whose cluster has two shards, and whose other node never answers.
type soleNode struct {
	Cluster
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

func (soleNode) DesiredSequence() uint64 { return 7 }

func (soleNode) Observe(crawl.Observer) {}

func (soleNode) Serve(ctx context.Context, _ http.Handler) { <-ctx.Done() }

func (soleNode) Statuses() map[cluster.Shard]crawl.Status { return nil }

func (soleNode) Refused() uint64 { return 0 }

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
func startNode(t *testing.T) *Server { return startSole(t, soleNode{}) }

func startSole(t *testing.T, n Cluster) *Server {
	t.Helper()
	s, err := Start(Options{Listen: "127.0.0.1:0", DataDir: t.TempDir(), Now: time.Now, Cluster: n,
		Settings: &fixedSettings{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
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
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"added":1,"done":true}`))}, nil
}

// TestAddWhileTakenOver: a list waits for the next owner of a shard, and not for the one that is cut off.
func TestAddWhileTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := &dividedImport{s: &Server{o: Options{Cluster: takenOver{at: start.Add(5 * time.Second)}, Now: time.Now}}, shards: 1}
		u, err := weburl.Parse("http://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Add(crawl.Addition{URL: u}), d.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
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
		if r, body := request(t, s, q[0], "/api/v1"+q[1], nil); r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%v: %d %s", q, r.StatusCode, body)
		}
	}
	if _, body := request(t, s, "GET", "/api/v1/hosts", nil); !strings.Contains(body, `"incomplete":{"shards":[0,1]`) {
		t.Error(body)
	}
}

// TestListWhileNodeLeaves: a list gets an error if its node leaves the cluster meanwhile.
func TestListWhileNodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dividedImport{s: &Server{o: Options{Cluster: gone{}, Now: time.Now}}, shards: 2}
		u, err := weburl.Parse("http://example.com/")
		if err == nil {
			err = d.Add(crawl.Addition{URL: u})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), errNoOwner.Error()) {
			t.Errorf("the list is committed: %v", err)
		}
	})
}

// TestRules: each operation has a rule for clusters, or answers for the cluster or its node by itself.
func TestRules(t *testing.T) {
	s := startNode(t)
	all, byItself := rules(), []string{"crawl-status", "crawl-events", "urls-add", "config-show", "cluster-show",
		"optouts-add", "optouts-remove", "config-change", "config-reload"}
	for path, item := range s.api.OpenAPI().Paths {
		for _, op := range []string{"Get", "Post", "Patch", "Delete"} {
			v := reflect.ValueOf(item).Elem().FieldByName(op)
			if v.IsNil() {
				continue
			}
			id := v.Elem().FieldByName("OperationID").String()
			if all[id] == nil && !slices.Contains(byItself, id) {
				t.Errorf("%s %s, %s: nothing says what it does in a cluster", op, path, id)
			}
			delete(all, id)
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
	_, body := request(t, s, "GET", "/api/v1/status", nil)
	for _, want := range []string{`"nodes":["a","b"]`, `"shards":[0,1]`, "node b: the node cannot be reached", `"cluster":"web"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
	for _, path := range []string{"/hosts", "/urls", "/plan", "/optouts", "/history"} {
		if _, body := request(t, s, "GET", "/api/v1"+path, nil); !strings.Contains(body, `"incomplete":{`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, q := range [][2]string{
		{"GET", "/export"}, {"GET", "/hosts/x.example"}, {"GET", "/url?url=http://x.example/"}, {"POST", "/hosts/x.example/pause"},
		{"GET", "/robots/check?url=http://x.example/"}, {"DELETE", "/optouts?scope=host&value=x.example"},
	} {
		if r, body := request(t, s, q[0], "/api/v1"+q[1], nil); r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%v: %d %s", q, r.StatusCode, body)
		}
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
		r, body := send(t, s, q[0], "/api/v1"+q[1], strings.NewReader(q[2]), "Content-Type", "application/json")
		if r.StatusCode != http.StatusOK ||
			!strings.Contains(body, `"incomplete":{`) || !strings.Contains(body, "node b: the node cannot be reached") {
			t.Errorf("%v: %d %s", q, r.StatusCode, body)
		}
	}
	if !slices.Equal(waits, []cluster.Shard{0, 1}) {
		t.Errorf("the deletion waits for %v", waits)
	}
	r, body := send(t, startNode(t), "POST", "/api/v1/urls/delete", strings.NewReader(`{"all":true}`),
		"Content-Type", "application/json")
	if r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "give it again") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
}

// TestMergeHosts: the first hosts of all pages come first, and what is left of a page is known.
func TestMergeHosts(t *testing.T) {
	page := func(matching int, waiting ...uint32) (p inspect.HostPage) {
		p.Matching = matching
		for _, n := range waiting {
			p.Hosts = append(p.Hosts, inspect.Host{Waiting: n})
		}
		return p
	}
	var all hostsOfAll
	taken := all.merge(map[cluster.Shard]inspect.HostPage{
		0: page(3, 9, 3, 1), 1: page(0), 2: page(2, 8, 7),
	}, compareHosts("waiting"), 4)
	var waiting []uint32
	for i := range all.Hosts {
		waiting = append(waiting, all.Hosts[i].Waiting)
	}
	if !slices.Equal(waiting, []uint32{9, 8, 7, 3}) || all.Matching != 5 || taken[0] != 2 || taken[2] != 2 {
		t.Errorf("%v, %v, %d", waiting, taken, all.Matching)
	}
	for _, sort := range inspect.HostSorts() {
		if (compareHosts(sort) == nil) != (sort == inspect.SortFound) {
			t.Errorf("%s has no order", sort)
		}
	}
}

// FuzzHostCursor: whatever clients send is a cursor of this cluster, or refused.
func FuzzHostCursor(f *testing.F) {
	f.Add("")
	f.Add(hostCursor{1: "a.b", 0: ""}.String())
	f.Add("eyI5IjoiIn0")
	f.Add(hostCursor{0: strings.Repeat("a", maxCursor)}.String())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseHostCursor(text, []cluster.Shard{0, 1})
		if err != nil {
			if !errors.As(err, new(errQuery)) || strings.Contains(err.Error(), "%!") {
				t.Error(err)
			}
			return
		}
		for shard := range c {
			if shard < 0 || shard > 1 {
				t.Errorf("%q: shard %d", text, shard)
			}
		}
		if again, err := parseHostCursor(c.String(), []cluster.Shard{0, 1}); len(c) > 0 &&
			(err != nil || !reflect.DeepEqual(again, c)) {
			t.Errorf("%q: %v, %v, %v", text, c, again, err)
		}
	})
}

// TestSumHistory: instants of nodes that are a step apart are one, and none is summed up in part.
func TestSumHistory(t *testing.T) {
	part := func(at ...int64) History {
		h := newHistory()
		for _, instant := range at {
			h.add(&Point{At: instant, Pages: 1, Known: 10})
		}
		return h
	}
	sum := sumHistory(map[string]History{"a": part(100, 112, 124), "b": part(105, 117), "c": part()}, 12)
	if !slices.Equal(sum.At, []int64{96, 108}) || !slices.Equal(sum.Known, []int{20, 20}) ||
		!slices.Equal(sum.Pages, []float64{2, 2}) {
		t.Errorf("%+v", sum)
	}
}
