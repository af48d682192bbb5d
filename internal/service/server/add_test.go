package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/urllist"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// Add sends URLs with the same Again as one list.
func (c *Client) Add(ctx context.Context, urls []crawl.Addition, waits func(string)) (crawl.Added, error) {
	s := c.Send(ctx, urls[0].Again, waits)
	for _, u := range urls {
		if err := s.Add(u); err != nil {
			return s.Sum(), err
		}
	}
	err := s.Finish()
	return s.Sum(), err
}

// reports decodes the answer to a list.
func reports(t *testing.T, body string) (all []AddReport) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	for {
		var a AddReport
		switch err := d.Decode(&a); err {
		case nil:
			all = append(all, a)
		case io.EOF:
			return all
		default:
			t.Fatalf("%v in %s", err, body)
		}
	}
}

func TestListOfURLs(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	list := r.web.URL("a.test", "/new") + "\nnonsense\n" + r.web.URL("a.test", "/") +
		"\n{\"url\":\"http://outside.test/\"}\n"
	_, body := r.read(t, "POST", "/api/v1/urls", strings.NewReader(list))
	all := reports(t, body)
	assert.True(t, len(all) == 1 && all[0].Lines == 4 &&
		all[0].Added == (crawl.Added{Added: 1, Known: 1, Outside: 1}) && all[0].Bad == 1 && all[0].Done &&
		len(all[0].Problems) == 1 && all[0].Problems[0].Line == 2 && all[0].Problems[0].Text == "nonsense", "%+v", all)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, list)
	_ = w.Close()
	if _, body := r.read(t, "POST", "/api/v1/urls", &packed); reports(t, body)[0].Known != 2 {
		t.Errorf("packed: %s", body)
	}
	if response, body := r.read(t, "POST", "/api/v1/urls",
		strings.NewReader("\x1f\x8b nothing")); response.StatusCode != 422 {
		t.Errorf("%d, %s", response.StatusCode, body)
	}
	// A page of another site, in a browser.
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.test"}} {
		if response, body := r.read(t, "POST", "/api/v1/urls", strings.NewReader(list),
			header...); response.StatusCode != 403 {
			t.Errorf("%v: %d, %s", header, response.StatusCode, body)
		}
	}
	if response, _ := r.read(t, "POST", "/api/v1/urls", strings.NewReader(list), "Authorization",
		"Bearer wrong"); response.StatusCode != 401 {
		t.Errorf("without the token: %d", response.StatusCode)
	}
}

// With each=true there is an answer for each line.
func TestAnswersForEachLine(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	list := r.web.URL("a.test", "/new") + "\nnonsense\n\n# nothing\n" + r.web.URL("a.test", "/") +
		"\n{\"url\":\"HTTP://outside.test/\"}\n" + r.web.URL("a.test", "/new") + "\n"
	_, body := r.read(t, "POST", "/api/v1/urls?each=true", strings.NewReader(list))
	all := reports(t, body)
	must.True(t, len(all) == 1 && all[0].Added == (crawl.Added{Added: 1, Known: 2, Outside: 1}), "%v", body)
	want := []Answer{
		{1, r.web.URL("a.test", "/new"), "added", ""}, {2, "", "bad", all[0].Problems[0].Reason},
		{5, r.web.URL("a.test", "/"), "known", ""},
		{6, "http://outside.test/", "outside", ""}, {7, r.web.URL("a.test", "/new"), "known", ""},
	}
	assert.Slice(t, all[0].Answers, want)
}

// TestReportsComeWhileTheListIsSent makes a pause in a list until a report counts what came before.
func TestReportsComeWhileTheListIsSent(t *testing.T) {
	const before, after = 5_005, 10
	r := startCrawl(t)
	r.finished(t)
	body, list := io.Pipe()
	answered := make(chan struct{})
	go func() {
		for i := range before + after {
			if i == before {
				<-answered
			}
			fmt.Fprintf(list, "%s%d\n", r.web.URL("a.test", "/list/"), i)
		}
		_ = list.CloseWithError(io.EOF)
	}()
	response := r.send(t, "POST", "/api/v1/urls", body)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	var last AddReport
	counted := false
	for lines.Scan() {
		last = reports(t, lines.Text())[0]
		if last.Added.Added == before && !counted {
			counted = true
			close(answered)
		}
	}
	assert.True(t, lines.Err() == nil && counted && last.Added.Added == before+after && last.Done &&
		last.Lines == before+after, "%+v, %v", last, lines.Err())
}

// stuck is a crawl that stands still: it takes URLs when there is room.
type stuck struct {
	fixedCrawl
	room chan struct{}
}

// NewImport implements Crawl.
func (s stuck) NewImport(crawl.ImportOptions) (crawl.Import, error) {
	return &stuckImport{room: s.room}, nil
}

// stuckImport commits when there is room.
type stuckImport struct {
	crawl.Import
	room chan struct{}
	n    int
	sum  atomic.Int64
}

func (i *stuckImport) Add(crawl.Addition) error { i.n++; return nil }

func (i *stuckImport) Full() bool { return false }

func (i *stuckImport) Gathered() int { return i.n }

func (i *stuckImport) Commit(ctx context.Context) error {
	select {
	case <-i.room:
		i.sum.Add(int64(i.n))
		i.n = 0
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (i *stuckImport) Results() []crawl.InsertResult { return nil }

func (i *stuckImport) Sum() crawl.Added { return crawl.Added{Added: int(i.sum.Load())} }

func (i *stuckImport) Close() error { return nil }

func startStuck(t *testing.T) (*Client, stuck) {
	t.Helper()
	c := stuck{fixedCrawl{crawl.Status{State: "stalled", Reason: "the database is full"}}, make(chan struct{})}
	o := Options{Listen: "127.0.0.1:0", DataDir: t.TempDir(), Now: time.Now}
	s := must.Get(Start(o, c))(t)
	client := must.Get(Dial(t.Context(), o.DataDir, ""))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, errors.Join(client.Close(), s.Close(ctx)))
	})
	return client, c
}

// TestAddWaitsForRoom: whoever adds URLs to a crawl that stands still is informed, and continues
// when there is room.
func TestAddWaitsForRoom(t *testing.T) {
	client, c := startStuck(t)
	var reasons []string
	sum, err := client.Add(t.Context(), []crawl.Addition{{URL: testkit.Parse(t, "http://a.test/")}},
		func(reason string) {
			if reasons = append(reasons, reason); len(reasons) == 1 {
				close(c.room)
			}
		})
	assert.True(t, err == nil && sum.Added == 1 && slices.Contains(reasons, "the database is full"),
		"%+v, %v, reasons %q", sum, err, reasons)
}

// TestAddIsInterrupted: a client that does not want to wait is gone, and the crawl has nothing more
// to do for it.
func TestAddIsInterrupted(t *testing.T) {
	client, _ := startStuck(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := client.Add(ctx, []crawl.Addition{{URL: testkit.Parse(t, "http://a.test/")}}, func(string) { cancel() })
	assert.Is(t, err, context.Canceled)
}

// TestRetryOverTheAPI puts URLs back, and says what is wrong with an order.
func TestRetryOverTheAPI(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	ctx, none := t.Context(), func(sweep.Retried) error { return nil }
	want := sweep.Retried{Inspected: 5, Back: 2}
	if got, err := r.client.Retry(ctx, Retry{States: []string{"failed", "denied"}, Host: "A.test", DryRun: true},
		none); err != nil || got != want {
		t.Errorf("dry run: %+v, %v", got, err)
	}
	assert.Returns(r.client.Retry(ctx, Retry{States: []string{"failed", "denied"}, Host: "A.test"}, none))(t, want)
	r.finished(t)
	assert.Equal(t, len(r.web.Requests().Path("/missing")), 2, "/missing was requested times")
	got, err := r.client.Retry(ctx, Retry{Tag: "news"}, none)
	assert.True(t, err == nil && got.Back == 0, "pages of seeds with a tag: %+v, %v", got, err)
	seed := Retry{Seed: r.web.URL("a.test", "/"), Contains: "/missing", DryRun: true}
	if got, err := r.client.Retry(ctx, seed, none); err != nil || got.Back != 1 {
		t.Errorf("pages of a seed: %+v, %v", got, err)
	}
	if got, err := r.client.Retry(ctx, Retry{Reasons: []ReasonName{"dns_not_found"}}, none); err != nil ||
		got.Back != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	missing := crawl.Addition{URL: testkit.Parse(t, r.web.URL("a.test", "/missing")), Again: true}
	assert.Returns(r.client.Add(ctx, []crawl.Addition{missing}, nil))(t, crawl.Added{Again: 1})
	for body, status := range map[string]int{
		`{}`: 422, `{"dry_run":true}`: 422, `{"states":["fetched"]}`: 422, `{"reasons":["bad"]}`: 422,
		`{"pattern":"("}`: 422, `{"host":"nobody.test"}`: 404, `{"x":1}`: 422,
		`{"seed":"http://nobody.test/"}`: 404, `[]`: 422, `{`: 400, ``: 400,
	} {
		response, text := r.read(t, "POST", "/api/v1/urls/retry", strings.NewReader(body))
		assert.Equal(t, response.StatusCode, status, body, text)
	}
}

// TestDropOverTheAPI leaves URLs out, by name and by what they are, and says what is wrong with a command.
func TestDropOverTheAPI(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	none := func(sweep.Retried) error { return nil }
	drop := func(q Retry) sweep.Retried {
		t.Helper()
		q.Drops = true
		return must.Get(r.client.Retry(t.Context(), q, none))(t)
	}
	missing := r.web.URL("a.test", "/missing")
	assert.Equal(t, drop(Retry{Contains: "/missing"}).Dropped, 0, "it does not wait, and")
	want := sweep.Retried{Inspected: 5, Dropped: 1}
	assert.Equal(t, drop(Retry{States: []string{"failed"}, DryRun: true}), want, "dry run")
	assert.Equal(t, drop(Retry{URLs: []string{missing, r.web.URL("a.test", "/no")}}).Dropped, 1,
		"two URLs, one of them unknown")
	again := crawl.Addition{URL: testkit.Parse(t, missing)}
	sum := must.Get(r.client.Add(t.Context(), []crawl.Addition{again}, nil))(t)
	assert.Equal(t, sum, (crawl.Added{Known: 1}), "found again")
	r.finished(t)
	assert.Equal(t, len(r.web.Requests().Path("/missing")), 1, "/missing was requested times")
	for body, status := range map[string]int{
		`{}`: 422, `{"dry_run":true}`: 422, `{"states":["excluded"]}`: 422, `{"urls":["http://["]}`: 422,
		`{"urls":[]}`: 422, `{"fetched":[]}`: 422, `{"host":"nobody.test"}`: 404,
		`{"urls":["http://nobody.test/"]}`: 404,
	} {
		response, text := r.read(t, "POST", "/api/v1/urls/drop", strings.NewReader(body))
		assert.Equal(t, response.StatusCode, status, body, text)
	}
}

// TestListsLikeAMap sends random lists at the same time, with each=true: URLs, duplicates, bad
// lines, lines that are too long, comments. The answers are in the order of the lines, and each URL
// is added once.
func TestListsLikeAMap(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	const lists, lines = 4, 3_000
	var wg sync.WaitGroup
	var mu sync.Mutex
	added, seen := make(map[string]int), make(map[string]bool)
	for n := range lists {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			var body strings.Builder
			var want []Answer
			for line := 1; line <= lines; line++ {
				switch random.IntN(8) {
				case 0:
					body.WriteString("# nothing\n")
				case 1:
					body.WriteString("no url\n")
					want = append(want, Answer{Line: line, Result: "bad"})
				case 2:
					u := fmt.Sprintf("http://outside%d.test/", random.IntN(10))
					body.WriteString(u + "\n")
					want = append(want, Answer{Line: line, URL: u, Result: "outside"})
				default:
					u := r.web.URL("a.test",
						fmt.Sprintf("/no/%d/%s", random.IntN(lines), strings.Repeat("y", random.IntN(30))))
					body.WriteString(u + "\n")
					want = append(want, Answer{Line: line, URL: u})
				}
			}
			body.WriteString("http://a.test/" + strings.Repeat("x", urllist.MaxLine) + "\n")
			want = append(want, Answer{Line: lines + 1, Result: "bad"})
			_, text := r.read(t, "POST", "/api/v1/urls?each=true", strings.NewReader(body.String()))
			all := reports(t, text)
			var got []Answer
			for i := range all {
				got = append(got, all[i].Answers...)
			}
			mu.Lock()
			defer mu.Unlock()
			if last := all[len(all)-1]; len(got) != len(want) || !last.Done || last.Lines != lines+1 {
				t.Errorf("%d answers, want %d; %+v", len(got), len(want), last)
				return
			}
			for i, w := range want {
				g := got[i]
				inScope := w.Result == ""
				assert.True(t, g.Line == w.Line && g.URL == w.URL && (inScope || g.Result == w.Result) &&
					(!inScope || g.Result == "added" || g.Result == "known"), "%+v, want %+v", g, w)
				if inScope {
					seen[g.URL] = true
				}
				if g.Result == "added" {
					added[g.URL]++
				}
			}
		})
	}
	wg.Wait()
	for u := range seen {
		assert.Equal(t, added[u], 1, u, "was added times")
	}
}

// TestAnswersOfLongList: the answers of a list that is longer than a window come in several
// reports, in order.
func TestAnswersOfLongList(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	const lines = maxAnswers + 2*answersPerReport
	var body strings.Builder
	for n := range lines {
		fmt.Fprintf(&body, "http://h%d.outside.test/%d\n", n%1000, n) // the crawl has nothing to commit
	}
	_, text := r.read(t, "POST", "/api/v1/urls?each=true", strings.NewReader(body.String()))
	line, all := 0, reports(t, text)
	for i := range all {
		assert.AtMost(t, len(all[i].Answers), answersPerReport, "answers in one report")
		for _, a := range all[i].Answers {
			if line++; a.Line != line || a.Result != "outside" || !strings.HasSuffix(a.URL, fmt.Sprint("/", line-1)) {
				t.Fatalf("answer %d is %+v", line, a)
			}
		}
	}
	last := all[len(all)-1]
	assert.True(t, line == lines && last.Done && last.Outside == lines, "%d answers, %+v", line, last)
}

// TestListIsBrokenOff: a list whose sender goes in the middle leaves nobody reading.
func TestListIsBrokenOff(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	ctx, goAway := context.WithCancel(t.Context())
	s := r.client.Send(ctx, false, nil)
	for n := range 20_000 {
		must.Do(t, s.Add(crawl.Addition{URL: testkit.Parse(t, fmt.Sprintf("http://outside.test/%d", n))}))
	}
	goAway()
	assert.Is(t, s.Finish(), context.Canceled)
	next := []crawl.Addition{{URL: testkit.Parse(t, r.web.URL("a.test", "/"))}}
	sum, err := r.client.Add(t.Context(), next, nil)
	assert.True(t, err == nil && sum.Known == 1, "the next list: %+v, %v", sum, err)
}
