package server

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// running is a real crawl of two small sites, with its API. It stays up until the test ends, or
// until stop.
type running struct {
	web    *testweb.Web
	server *Server
	client *Client
	stop   context.CancelFunc
	ended  chan struct{}
}

func startCrawl(t *testing.T, change ...func(*crawl.Options)) *running {
	t.Helper()
	page := testweb.Page("page", "/1", "/2", "/private", "/missing")
	web := testweb.Serve(t, testweb.Config{Sites: []testweb.Site{
		{Host: "a.test", Handler: testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private\n"),
			"/": page, "/1": page, "/2": page}},
		{Host: "b.test", Handler: testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nCrawl-delay: 600\n"),
			"/": page}},
	}})
	o := crawl.DefaultOptions()
	o.DataDir, o.Archive.Dir, o.Fetch.UserAgent = t.TempDir(), t.TempDir(), "amble-test"
	o.Fetch.AllowPrivate, o.Fetch.Resolver, o.Mode = true, web.ResolverAddr(), frontier.ModeHost
	o.ExitWhenDone, o.Frontier.Politeness.Delay = false, 5*time.Millisecond
	for _, c := range change {
		c(&o)
	}
	engine := must.Get(crawl.Open(o, slog.New(slog.DiscardHandler)))(t)
	r := &running{web: web, ended: make(chan struct{})}
	r.server = must.Get(Start(
		Options{Listen: "127.0.0.1:0", Token: "secret", FetchToken: "fetcher", DataDir: o.DataDir, Now: time.Now},
		engine))(t)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	seeds := []crawl.Seed{{URL: testkit.Parse(t, web.URL("a.test", "/"))},
		{URL: testkit.Parse(t, web.URL("b.test", "/"))}}
	go func() {
		defer close(r.ended)
		_, err := engine.Run(ctx, seeds)
		assert.True(t, err == nil, "%v", err)
	}()
	r.client = must.Get(Dial(ctx, o.DataDir, "secret"))(t)
	t.Cleanup(func() {
		stop()
		<-r.ended
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		assert.NoError(t, errors.Join(r.client.Close(), r.server.Close(closing), engine.Close()))
	})
	return r
}

// finished waits until all of a.test is done.
func (r *running) finished(t *testing.T) {
	t.Helper()
	r.eventually(t, "the end of a.test", func() bool {
		h, err := r.client.Host(context.Background(), "a.test")
		return err == nil && h.Known == 5 && h.Waiting == 0
	})
}

// send sends a request with the token. The caller closes the body.
func (r *running) send(t *testing.T, method, path string, body io.Reader, header ...string) *http.Response {
	t.Helper()
	request := must.Get(http.NewRequest(method, "http://"+r.server.Address()+path, body))(t)
	request.Header.Set("Authorization", "Bearer secret")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	return must.Get(transport.RoundTrip(request))(t)
}

func (r *running) read(t *testing.T, method, path string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	response := r.send(t, method, path, body, header...)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	conforms(t, r.server, response, string(text))
	return response, string(text)
}

func TestClientSeesTheCrawl(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	ctx := context.Background()
	var hosts []string
	n, err := r.client.Hosts(ctx, inspect.HostQuery{Sort: "name", Limit: 1}, func(h *inspect.Host) error {
		hosts = append(hosts, h.Host+" "+h.State)
		return nil
	})
	assert.True(t, err == nil && n == 2 && strings.Join(hosts, ", ") == "a.test idle", "%v of %d, %v", hosts, n, err)
	states := map[string]string{}
	from := ""
	for pages := 0; ; pages++ {
		next := must.Get(r.client.URLs(ctx, inspect.URLQuery{Limit: 2}, from, func(u *inspect.URL) error {
			states[strings.TrimPrefix(u.URL, strings.TrimSuffix(r.web.URL("a.test", "/"), "/"))] = u.State + " " +
				u.Reason
			return nil
		}))(t)
		if next == "" {
			break
		}
		from = next
		must.True(t, pages <= 10, "the pages do not end")
	}
	for path, want := range map[string]string{"/": "fetched ", "/private": "denied robots",
		"/missing": "failed status", "/2": "fetched "} {
		assert.Equal(t, states[path], want, path)
	}
	u, err := r.client.URL(ctx, testkit.Parse(t, r.web.URL("a.test", "/private")))
	assert.True(t, err == nil && !u.Robots.Allowed && u.Robots.Rule == "Disallow: /private" &&
		u.Via == r.web.URL("a.test", "/"), "%+v, %v", u, err)
	if _, err := r.client.Host(ctx, "nobody.test"); !errors.Is(err, inspect.ErrUnknown) ||
		err.Error() != "host nobody.test: not in the database" {
		t.Errorf("the error is %v", err)
	}
	if u, err := r.client.URL(ctx, testkit.Parse(t, "http://a.test/none")); err != nil || u.Known ||
		u.Host.State == inspect.StateUnknown {
		t.Errorf("%+v, %v", u, err)
	}
	failed := errors.New("enough")
	assert.Fails(r.client.URLs(ctx, inspect.URLQuery{}, "", func(*inspect.URL) error { return failed }))(t, failed,
		"the error")
}

func TestQuestionsThatMakeNoSense(t *testing.T) {
	r := startCrawl(t)
	for path, status := range map[string]int{
		"/api/v1/hosts?limit=-1": 422, "/api/v1/hosts?limit=0": 422, "/api/v1/hosts?sort=beauty": 422,
		"/api/v1/hosts?state=x":    422,
		"/api/v1/hosts?colour=red": 422, "/api/v1/export/hosts": 200, "/api/v1/hosts/none.test": 404,
		"/api/v1/urls?from=x":  422,
		"/api/v1/urls?limit=x": 422, "/api/v1/urls?state=asleep": 422, "/api/v1/urls?reason=bad": 422,
		"/api/v1/export?reason=bad":           422,
		"/api/v1/urls?seed=http://none.test/": 404, "/api/v1/export?seed=none.test": 404,
		"/api/v1/urls?seed=ftp:x":     422,
		"/api/v1/urls?host=none.test": 404, "/api/v1/export?host=none.test": 404,
		"/api/v1/url": 422, "/api/v1/robots": 422,
		"/api/v1/robots?origin=x": 422, "/api/v1/robots/check": 422, "/api/v1/robots/check?url=x": 422,
		"/api/v1/url?url=nonsense": 422, "/api/v1/export": 200,
	} {
		response, body := r.read(t, "GET", path, nil)
		kind := response.Header.Get("Content-Type")
		assert.True(t, response.StatusCode == status && (status == 200 || kind == "application/problem+json") &&
			(status != 200 || kind == "application/jsonl"), "%s: %d, %s, %s", path, response.StatusCode, kind, body)
	}
	for _, path := range []string{"/api/v1/hosts", "/api/v1/hosts/a.test", "/api/v1/urls", "/api/v1/url",
		"/api/v1/export"} {
		response, _ := r.read(t, "GET", path, nil, "Authorization", "Bearer wrong")
		assert.True(t, response.StatusCode == 401, "%s without the token: %d", path, response.StatusCode)
	}
}

// Every answer of the crawl is as the description of the API has it.
func TestAnswersConform(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	for _, path := range []string{
		"/api/v1/status", "/api/v1/hosts", "/api/v1/hosts?sort=name&limit=1", "/api/v1/hosts?sort=bytes",
		"/api/v1/hosts?state=waiting&sort=next",
		"/api/v1/hosts/a.test", "/api/v1/hosts/b.test", "/api/v1/urls?limit=2",
		"/api/v1/urls?host=a.test&state=denied", "/api/v1/export",
		"/api/v1/export/hosts", "/api/v1/url?url=" + r.web.URL("a.test", "/private"), "/api/v1/url?url=" +
			r.web.URL("b.test", "/"),
		"/api/v1/url?url=http://none.test/", "/api/v1/robots?origin=" + r.web.URL("a.test", "/"),
		"/api/v1/robots?origin=http://none.test",
		"/api/v1/robots/check?url=" + r.web.URL("a.test", "/private") + "&url=http://none.test/",
	} {
		response, body := r.read(t, "GET", path, nil)
		assert.True(t, response.StatusCode == 200 && body != "", "%s: %d, %s", path, response.StatusCode, body)
	}
}

func TestAddWithTheClient(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	urls := []crawl.Addition{{URL: testkit.Parse(t, r.web.URL("a.test", "/deep")), Depth: 9, Priority: -4},
		{URL: testkit.Parse(t, "http://out.test/")}}
	sum, err := r.client.Add(context.Background(), urls, nil)
	assert.True(t, err == nil && sum == (crawl.Added{Added: 1, Outside: 1}), "%+v, %v", sum, err)
	if u, err := r.client.URL(context.Background(), urls[0].URL); err != nil || u.Depth != 9 || u.Priority != -4 {
		t.Errorf("%+v, %v", u, err)
	}
	r.stop()
	<-r.ended
	assert.Fails(r.client.Add(context.Background(), urls, nil))(t, crawl.ErrNotRunning, "a crawl that has ended")
	if _, err := r.client.Host(context.Background(), "a.test"); err != nil {
		t.Errorf("what is stored can still be seen: %v", err)
	}
}

// An answer that breaks off must not look complete.
func TestBrokenAnswers(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	must.Get(r.client.Add(context.Background(),
		[]crawl.Addition{{URL: testkit.Parse(t, r.web.URL("a.test", "/x"))}},
		nil))(t)
	stream := func(fail bool) error {
		mux := http.NewServeMux()
		s := &Server{o: Options{Now: time.Now}}
		mux.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set(instanceHeader, r.client.running.Instance)
			t := s.newStream(w, request)
			for range 5000 {
				_ = t.Lines.Write(inspect.URL{URL: "http://a.test/"})
			}
			if fail {
				t.end(errors.New("the disk is on fire"))
			}
			t.end(nil)
		})
		fake, err := startFake(mux)
		if err != nil {
			return err
		}
		defer fake.close()
		c := &Client{running: Running{Address: fake.address, Instance: r.client.running.Instance},
			transport: &http.Transport{}}
		defer c.Close()
		_, err = c.URLs(context.Background(), inspect.URLQuery{}, "", func(*inspect.URL) error { return nil })
		return err
	}
	must.Do(t, stream(false))
	err := stream(true)
	assert.True(t, err != nil && strings.Contains(err.Error(), "broke off its response"), "the error is %v", err)
}

// Every state and sort order of hosts works.
func TestHostFilters(t *testing.T) {
	r := startCrawl(t)
	for _, state := range inspect.HostStates() {
		for _, path := range []string{"/api/v1/hosts?state=", "/api/v1/export/hosts?state="} {
			response, body := r.read(t, "GET", path+state, nil)
			assert.True(t, response.StatusCode == http.StatusOK, "%s%s: %s", path, state, body)
		}
	}
	for _, sort := range inspect.HostSorts() {
		response, body := r.read(t, "GET", "/api/v1/hosts?sort="+sort, nil)
		assert.True(t, response.StatusCode == http.StatusOK, "sorted by %s: %s", sort, body)
	}
}

// TestListsAsCSV: a list has the same rows as CSV as it has as JSON lines, in a file that a browser saves.
func TestListsAsCSV(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	for path, name := range map[string]string{"/api/v1/export?": "urls.csv", "/api/v1/export/hosts?": "hosts.csv"} {
		_, lines := r.read(t, "GET", path, nil)
		response := r.send(t, "GET", path+"format=csv", nil)
		rows, err := csv.NewReader(response.Body).ReadAll()
		must.Do(t, errors.Join(err, response.Body.Close()))
		assert.True(t, response.Header.Get("Content-Type") == "text/csv; charset=utf-8" &&
			strings.Contains(response.Header.Get("Content-Disposition"), name), "%s: %v", path, response.Header)
		var all []map[string]any
		for line := range strings.Lines(lines) {
			var values map[string]any
			must.Do(t, json.Unmarshal([]byte(line), &values))
			all = append(all, values)
		}
		must.True(t, len(rows) == len(all)+1, "%s: %d rows, want a head and %d", path, len(rows), len(all))
		for i, values := range all {
			for j, column := range rows[0] {
				if text, is := values[column].(string); is && rows[i+1][j] != text {
					t.Errorf("%s: row %d has the %s %q, want %q", path, i+1, column, rows[i+1][j], text)
				}
			}
		}
	}
	response, _ := r.read(t, "GET", "/api/v1/export?format=xml", nil)
	assert.True(t, response.StatusCode == 422, "xml: %d", response.StatusCode)
}

// TestSeedsOverTheAPI adds seeds with the client, and removes them, many at a time.
func TestSeedsOverTheAPI(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	before := must.Get(r.client.Seeds(t.Context()))(t)
	var w crawl.SeedWish
	for i := range 250 {
		s := crawl.Seed{URL: testkit.Parse(t, fmt.Sprintf("http://a.test/%d/%s", i, strings.Repeat("x", i)))}
		s.Tags = []string{"many"}
		w.Add = append(w.Add, s)
	}
	done, err := r.client.ChangeSeeds(t.Context(), w)
	must.True(t, err == nil && done.Added == 250, "%+v, %v", done, err)
	var remove crawl.SeedWish
	for i := range w.Add {
		remove.Remove = append(remove.Remove, w.Add[i].URL)
	}
	unknown := crawl.SeedWish{Remove: []weburl.URL{w.Add[0].URL, testkit.Parse(t, "http://none.test/")}}
	assert.Fails(r.client.ChangeSeeds(t.Context(), unknown))(t, inspect.ErrUnknown, "the error")
	if all, err := r.client.Seeds(t.Context()); err != nil || len(all) != len(before)+250 {
		t.Errorf("%d seeds, want %d: %v", len(all), len(before)+250, err)
	}
	if done, err := r.client.ChangeSeeds(t.Context(), remove); err != nil || done.Removed != 250 {
		t.Errorf("%+v, %v", done, err)
	}
	if all, err := r.client.Seeds(t.Context()); err != nil || !reflect.DeepEqual(all, before) {
		t.Errorf("%+v, want %+v: %v", all, before, err)
	}
}
