package shards

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// elsewhere is a web of two sites in different shards. The robots.txt of the first one redirects to the
// second, and from there back, and from there to the rules. The root of the second leads to the first, when
// it is open.
func elsewhere(open <-chan struct{}, rules http.Handler) (first, second string, sites []testweb.Site) {
	hosts := inShards(2)
	first, second = hosts[0], hosts[1]
	own := testweb.Routes{
		"/": testweb.Page("root", "/no/1", "/yes"), "/yes": testweb.Page("yes"), "/no/1": testweb.Page("no"),
		"/robots.txt": testweb.Redirect(301, "//"+second+"/back"),
		"/onward":     testweb.Redirect(301, "//"+second+"/rules"),
	}
	theirs := testweb.Routes{
		"/robots.txt": testweb.Robots(""),
		"/back":       testweb.Redirect(302, "//"+first+"/onward"), "/rules": rules,
	}
	root := testweb.Page("root", "/0", "//"+first+"/")
	theirs["/"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-open:
			root.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	for i := range 10 {
		theirs[fmt.Sprintf("/%d", i)] = testweb.Page("page", fmt.Sprintf("/%d", i+1))
	}
	return first, second, []testweb.Site{{Host: first, Handler: own}, {Host: second, Handler: theirs}}
}

// TestHeavyRobotsOfAnotherShard: a robots.txt that redirects to a host of another shard counts as on one machine.
// The owner of that shard makes the request, within the limits of the host; if its node is killed meanwhile,
// the next owner makes it again.
func TestHeavyRobotsOfAnotherShard(t *testing.T) {
	t.Parallel()
	rules := testweb.Robots("User-agent: *\nDisallow: /no/\n")
	open := make(chan struct{})
	close(open)
	first, second, sites := elsewhere(open, rules)
	machine := serve(t, sites)
	o := crawlOptions(machine, t.TempDir(), "alone", time.Millisecond)
	o.Mode = frontier.ModeAny
	crawlAlone(t, []crawl.Seed{seed(t, machine, second)}, o)
	want := pages(machine)
	must.True(t, !slices.Contains(want, first+"/no/1") && slices.Contains(want, first+"/yes"),
		"one machine requests %v", want)
	requested, dead := make(chan string, 1), make(chan struct{})
	open = make(chan struct{})
	_, _, sites = elsewhere(open, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-dead:
			rules.ServeHTTP(w, r)
			return
		default:
		}
		select {
		case requested <- r.UserAgent():
		default:
		}
		select {
		case <-dead:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}))
	web := serve(t, sites)
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), 50*time.Millisecond, shortTTL)
	w.seeds = []crawl.Seed{seed(t, web, second)}
	w.alter = func(o *Options) { o.Crawl.Mode = frontier.ModeAny }
	for _, name := range []string{"b", "e"} { // by these names each node has one of the two shards
		w.start(name, t.TempDir())
	}
	w.eventually("each node has one of the shards", func() error {
		has := func(p *process, host string) bool { return slices.Contains(p.owned(), shardOf(host)) }
		if a, b := w.nodes[0], w.nodes[1]; has(a, first) && has(b, second) || has(a, second) && has(b, first) {
			return nil
		}
		return errNotYet
	})
	close(open)
	var agent string
	select {
	case agent = <-requested:
	case <-time.After(patience):
		t.Fatal("nobody has requested the rules")
	}
	for _, p := range w.nodes {
		if strings.HasPrefix(agent, p.name) {
			p.kill()
		}
	}
	close(dead)
	w.eventually("the crawl", func() error {
		if got := pages(web); !slices.Equal(got, want) {
			return fmt.Errorf("requested: %v, one machine requests %v", got, want)
		}
		return nil
	})
	for _, p := range w.nodes {
		if !strings.HasPrefix(agent, p.name) {
			p.leave()
		}
	}
	for _, host := range []string{first, second} {
		for _, g := range web.Requests().Host(host).ShortGaps(w.delay) {
			t.Errorf("%s: %v between %s and %s", host, g.Length, g.Before.Path, g.After.Path)
		}
	}
	assert.Slice(t, pages(web), want, "requested one machine requests")
}

func robotsQuery(t testing.TB) crawl.RobotsQuery {
	u := must.Get(weburl.Parse("http://a.test/x"))(t)
	return crawl.RobotsQuery{URL: u, Origin: weburl.Origin{Scheme: "https", Host: "b.test", Port: 443}, ETag: "e",
		LastModified: "m"}
}

var robotsOutcome = robots.Outcome{Status: 200, Truncated: true, Body: []byte("hi"),
	Header: robots.Header{Location: "/l", LastModified: "m"}}

// TestGoldenRobots: robots queries and their answers are these bytes.
func TestGoldenRobots(t *testing.T) {
	q := robotsQuery(t)
	b := appendRobotsQuery(nil, 258, &q)
	const want = "0000000000000102" + "0f687474703a2f2f612e746573742f78" + "0f68747470733a2f2f622e746573742f" +
		"0165" + "016d"
	assert.Equal(t, fmt.Sprintf("%x", b), want, "the query is", b)
	for n := range b {
		d := wire.NewDecoder(b[:n])
		_, _, err := decodeRobotsQuery(&d)
		assert.True(t, err != nil, "%d bytes of a query are one", n)
	}
	d := wire.NewDecoder(b)
	id, got, err := decodeRobotsQuery(&d)
	assert.True(t, err == nil && id == 258 && got == q, "the query: %d, %+v, %v", id, got, err)
	b = appendRobotsAnswer(nil, &robotsOutcome)
	assert.Equal(t, fmt.Sprintf("%x", b), "010001c80100022f6c000000000000016d026869", "the answer is", b)
	d = wire.NewDecoder(b)
	if got, done, err := decodeRobotsAnswer(&d); err != nil || !done || fmt.Sprint(got) != fmt.Sprint(robotsOutcome) {
		t.Errorf("the answer: %+v, %v", got, err)
	}
}

// FuzzRobotsQuery: whatever arrives, it is refused or means what is encoded the same.
func FuzzRobotsQuery(f *testing.F) {
	q := robotsQuery(f)
	f.Add(appendRobotsQuery(nil, 258, &q))
	f.Add(appendRobotsAnswer(nil, &robotsOutcome))
	f.Add([]byte{robotsNotYet})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := wire.NewDecoder(b)
		if id, q, err := decodeRobotsQuery(&d); err == nil {
			d = wire.NewDecoder(appendRobotsQuery(nil, id, &q))
			again, same, err := decodeRobotsQuery(&d)
			assert.True(t, err == nil && again == id && same == q, "%+v, %v, want %+v", same, err, q)
		}
		d = wire.NewDecoder(b)
		if out, done, err := decodeRobotsAnswer(&d); err == nil && done {
			d = wire.NewDecoder(appendRobotsAnswer(nil, &out))
			same, _, err := decodeRobotsAnswer(&d)
			assert.True(t, err == nil && fmt.Sprint(same) == fmt.Sprint(out), "%+v, %v, want %+v", same, err, out)
		}
	})
}
