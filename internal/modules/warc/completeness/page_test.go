package completeness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// told is a capture of a URL: its status and media type, and fields of its metadata record, as NAME=VALUE.
func told(url string, at int64, status int, mime string, fields ...string) *warcfiles.Told {
	t := &warcfiles.Told{Entry: warc.Entry{URL: url, Time: time.Unix(at, 0), Status: status, Mime: mime}}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		if name == "Location" {
			t.Head = []byte("HTTP/1.1 302 Found\r\nLocation: " + value + "\r\n\r\n")
			continue
		}
		t.Fields = append(t.Fields, warc.Field{Name: name, Value: value})
	}
	return t
}

// known is a source of states; nothing more is found.
type known map[string]RequisiteState

func (k known) States(_ context.Context, urls []string) (map[string]RequisiteState, error) {
	return maps.Clone(k), nil
}

func (known) Find(context.Context, *Docs, []WantedDoc) error { return nil }

const (
	site   = "http://a.test/"
	sheet  = "http://a.test/s.css"
	image  = "http://cdn.test/i.png"
	moved  = "http://a.test/moved"
	target = "http://b.test/there"
)

func fetched() RequisiteState { return RequisiteState{State: "fetched"} }

// TestPage counts the requisites of a page, with those of its style sheet and behind a redirect.
func TestPage(t *testing.T) {
	docs := func() *Docs {
		d := new(Docs)
		for _, c := range []*warcfiles.Told{
			told(site, 10, 200, "text/html", "requisite="+sheet, "requisite="+moved),
			told(sheet, 11, 200, "text/css", "kind=requisite", "requisite="+image, "requisite="+sheet),
			told(moved, 12, 302, "", "kind=requisite", "Location="+target),
		} {
			d.take(c)
		}
		return d
	}
	all := known{sheet: fetched(), image: fetched(), moved: {State: "redirected"}, target: fetched()}
	for _, test := range []struct {
		name    string
		states  known
		more    *warcfiles.Told
		stored  int
		waiting int
		missing string
	}{
		{"complete", nil, nil, 3, 0, ""},
		{"no style sheet: what it names is not known", known{sheet: {State: "failed", Reason: "status 404"}}, nil, 1, 0,
			"1 status 404"},
		{"waiting", known{image: {State: "retrying", Reason: "connect_timeout"}}, nil, 2, 1, ""},
		{"by a wall, behind a redirect", known{target: {State: "denied", Reason: "wall"}}, nil, 2, 0, "1 wall"},
		{"a redirect out of the scope", known{moved: {State: "redirected", Reason: "opt_out"}}, nil, 2, 0, "1 opt_out"},
		{"a redirect in a circle", known{target: {State: "redirected"}},
			told(target, 13, 302, "", "Location="+moved), 2, 0, "1 redirected"},
		{"not stored by a preference", known{image: {State: "fetched", Reason: "usage"}}, nil, 2, 0, "1 usage"},
		{"two reasons", known{image: {State: "denied", Reason: "robots"}, target: {State: "unknown",
			Reason: ReasonNotTaken}}, nil, 1, 0, "1 not taken, 1 robots"},
		{"beyond the bound", nil, told(site, 20, 200, "text/html", "requisite="+image, "requisites-left-out=7"), 1, 0,
			"7 budget"},
		{"unchanged since", nil, told(site, 20, 200, warc.MimeRevisit), 3, 0, ""},
		{"not modified since", nil, told(site, 20, 304, warc.MimeRevisit), 3, 0, ""},
		{"unchanged, and stored again", nil, told(site, 20, 200, "text/html", "changed=false"), 3, 0, ""},
		{"changed to one without any", nil, told(site, 20, 200, "text/html", "changed=true"), 0, 0, ""},
		{"an older one", nil, told(site, 9, 200, "text/html", "requisite="+image), 3, 0, ""},
	} {
		d, states := docs(), maps.Clone(all)
		maps.Copy(states, test.states)
		if test.more != nil {
			d.take(test.more)
		}
		became, err := d.Resolve(context.Background(), states, false)
		p, ok := d.Page(site, became)
		must.True(t, err == nil && ok, "%s: %v, %v", test.name, ok, err)
		if p.Stored != test.stored || p.Waiting != test.waiting || counts(p.Missing) != test.missing ||
			p.Complete != (test.waiting == 0 && test.missing == "") || p.Named != p.Stored+p.Waiting+p.missing() {
			t.Errorf("%s: %+v", test.name, p)
		}
		sum := d.Sum(became, 10)
		want := len(p.Requisite) == 0 && p.Complete
		assert.True(t, sum.Pages == 1 && (sum.Complete == 1) == want && sum.Waiting == test.waiting &&
			counts(sum.Missing) == test.missing, "%s: in all %+v", test.name, sum)
	}
	_, ok := docs().Page(moved, nil)
	assert.True(t, !ok, "a redirect is a page")
}

// TestOrder: whatever the order in which captures are read, the newest one that says what a page names counts.
func TestOrder(t *testing.T) {
	captures := []*warcfiles.Told{
		told(site, 10, 200, "text/html", "requisite="+image),
		told(site, 20, 200, "text/html", "requisite="+sheet, "requisite="+image),
		told(site, 30, 200, warc.MimeRevisit),
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}} {
		d := new(Docs)
		for _, i := range order {
			d.take(captures[i])
		}
		states, err := d.Resolve(context.Background(), known{sheet: fetched(), image: fetched()}, false)
		p, _ := d.Page(site, states)
		assert.True(t, err == nil && p.Named == 2 && d.List[0].Page, "in the order %v: %+v, %v", order, p, err)
	}
}

// nodes is a cluster of two shards by the host, and of two nodes.
type nodes struct {
	server.Division
	states [2]known
	docs   map[string]*Docs
	lost   bool // a node, and a shard
	none   bool // no requisites
	asked  int
}

func (n *nodes) Status(context.Context) (s server.CrawlStatus) {
	if !n.none {
		s.Requisites = map[string]int{}
	}
	return s
}

func (n *nodes) Nodes() []string { return []string{"one", "two"} }

func (n *nodes) ShardOf(host string) int { return len(host) % 2 }

func (n *nodes) Absent(failed map[string]error) *server.Incomplete {
	return &server.Incomplete{Nodes: server.SortedKeys(failed)}
}

func respond(value any) (*http.Response, error) {
	text, err := json.Marshal(value)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(text))}, err
}

func (n *nodes) AskShard(_ context.Context, shard int, r *server.Request) (*http.Response, error) {
	var q docQuestion
	if err := json.Unmarshal(r.Body, &q); err != nil || len(q.URLs) > maxURLs {
		return nil, fmt.Errorf("%d URLs: %w", len(q.URLs), err)
	}
	if n.asked++; n.lost && shard == 1 {
		return nil, errors.New("nobody answers")
	}
	found := stateAnswer{States: map[string]RequisiteState{}}
	for _, u := range q.URLs {
		if s, ok := n.states[shard][u]; ok {
			found.States[u] = s
		}
	}
	return respond(found)
}

func (n *nodes) AskNode(_ context.Context, node string, r *server.Request) (*http.Response, error) {
	if n.lost && node == "two" {
		return nil, errors.New("nobody answers")
	}
	return respond(n.docs[node])
}

// TestCluster: the page is stored on one node and its style sheet on another, and their hosts belong to different
// shards. What does not answer is said, and an answer that makes no sense costs itself.
func TestCluster(t *testing.T) {
	one, two := new(Docs), new(Docs)
	one.take(told(site, 10, 200, "text/html", "requisite="+sheet))
	two.take(told(sheet, 11, 200, "text/css", "kind=requisite", "requisite="+image))
	n := &nodes{docs: map[string]*Docs{"one": one, "two": two}}
	all := known{site: fetched(), sheet: fetched(), image: {State: "denied", Reason: "robots"}}
	for u, s := range all {
		shard := n.ShardOf(strings.Split(u, "/")[2])
		if n.states[shard] == nil {
			n.states[shard] = known{}
		}
		n.states[shard][u] = s
	}
	page := func() (*PageRequisites, *server.Incomplete) {
		p := must.Get(ofCluster(context.Background(), n, site))(t)
		return p, p.Incomplete
	}
	p, lacking := page()
	assert.True(t, p.Named == 2 && p.Stored == 1 && p.Missing["robots"] == 1 && lacking == nil, "%+v, lacking %+v", p,
		lacking)
	n.lost = true
	p, lacking = page()
	assert.True(t, p.Named == 1 && !p.Complete && lacking != nil && reflect.DeepEqual(lacking.Nodes, []string{"two"}),
		"without a node: %+v, lacking %+v", p, lacking)
	if rows := p.rows(); len(rows) == 0 || !strings.Contains(rows[len(rows)-1][1], "no answer from two") {
		t.Errorf("without a node: %q", rows)
	}
	text, _, _, err := tableOfNodes(context.Background(), n)
	assert.True(t, errors.As(err, &lacking) && reflect.DeepEqual(lacking.Nodes, []string{"two"}) &&
		strings.Contains(text, "1 stored page"), "a report without a node: %q, %v", text, err)
	bare := "http://b.test/" // is made of nothing
	n.states[n.ShardOf("b.test")][bare] = fetched()
	one.take(told(bare, 12, 200, "text/html"))
	p = must.Get(ofCluster(context.Background(), n, bare))(t)
	assert.True(t, p.Complete && p.Incomplete == nil && p.rows() == nil,
		"a page that is made of nothing, without a node: %+v", p)
	picture := "http://c.test/i.png"
	n.states[n.ShardOf("c.test")][picture] = fetched()
	one.put(picture, Doc{At: 12, Bare: true}, nil)
	p = must.Get(ofCluster(context.Background(), n, picture))(t)
	assert.True(t, p.Incomplete == nil && p.Captured.IsZero() && p.rows() == nil, "a picture, without a node: %+v", p)
	far := "http://a.tests/" // of the shard that does not answer
	p = must.Get(ofCluster(context.Background(), n, far))(t)
	want := [][2]string{{"made of", "not known: shard 1: nobody answers"}}
	assert.True(t, p.Incomplete != nil && slices.Equal(p.Incomplete.Shards, []int{1}) && slices.Equal(p.rows(), want),
		"a page of a shard that does not answer: %+v", p)
	n.none = true
	if p := must.Get(ofCluster(context.Background(), n, far))(t); p.Incomplete != nil || p.rows() != nil {
		t.Errorf("a page of a crawl without requisites: %+v", p)
	}
	n.none, n.lost = false, false
	n.docs["two"] = &Docs{Texts: []string{"http://x.test/"}, List: []Doc{{URL: 7, Parts: []int32{-1}}}}
	p, lacking = page()
	assert.True(t, p.Named == 1 && lacking != nil, "with an answer that makes no sense: %+v, lacking %+v", p, lacking)
	many := make([]string, 2*maxURLs+1)
	for i := range many {
		many[i] = fmt.Sprintf("http://a.test/%d", i)
	}
	n.asked = 0
	if _, err := (&cluster{d: n}).States(context.Background(), many); err != nil || n.asked != 3 {
		t.Errorf("%d questions for %d URLs: %v", n.asked, len(many), err)
	}
	many, n.asked = many[:maxURLs], 0
	for i := range many {
		many[i] += strings.Repeat("&", maxURLBytes/1000) // six bytes each in JSON
	}
	if _, err := (&cluster{d: n}).States(context.Background(), many); err != nil || n.asked != 3 {
		t.Errorf("%d questions for %d long URLs: %v", n.asked, len(many), err)
	}
}

// silent is an API that has no answer, or an answer.
type silent struct {
	access.Inspector
	err error
}

func (s silent) Command(context.Context, string, string, any, any) error { return s.err }

// TestNoAnswer: a page that the API says nothing of is told without its requisites, with the reason.
func TestNoAnswer(t *testing.T) {
	story := &inspect.URLStory{}
	value, rows, err := OfURL(t.Context(), nil, silent{err: errors.New("no answer in 20s")}, story)
	p, is := value.(*PageRequisites)
	assert.True(t, err == nil && is && !p.Complete &&
		slices.Equal(rows, [][2]string{{"made of", "not known: no answer in 20s"}}), "%+v, %q, %v", value, rows, err)
	if value, rows, err = OfURL(t.Context(), nil, silent{}, story); value != nil || rows != nil || err != nil {
		t.Errorf("a page without requisites: %+v, %q, %v", value, rows, err)
	}
}

// TestBounds: more than is kept is said, and nothing grows with it.
func TestBounds(t *testing.T) {
	d := &Docs{Texts: make([]string, maxTexts-1)}
	d.take(told(site, 10, 200, "text/html", "requisite="+sheet))
	assert.True(t, len(d.Texts) == maxTexts && d.Cut && len(d.List) == 1 && len(d.List[0].Parts) == 0,
		"%d texts, %d documents, cut: %v", len(d.Texts), len(d.List), d.Cut)
	s := d.Sum(States{}, 1)
	assert.True(t, s.Cut && strings.Contains(s.Text(), "more pages than were compared"), "%+v", s)
}
