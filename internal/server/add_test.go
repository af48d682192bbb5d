package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/crawl"
)

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
	if len(all) != 1 || all[0].Lines != 4 || all[0].Added != (crawl.Added{Added: 1, Known: 1, Outside: 1}) ||
		all[0].Bad != 1 || !all[0].Done ||
		len(all[0].Problems) != 1 || all[0].Problems[0].Line != 2 || all[0].Problems[0].Text != "nonsense" {
		t.Errorf("%+v", all)
	}
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
	if len(all) != 1 || all[0].Added != (crawl.Added{Added: 1, Known: 2, Outside: 1}) {
		t.Fatal(body)
	}
	want := []Answer{
		{1, r.web.URL("a.test", "/new"), "added", ""}, {2, "", "bad", all[0].Problems[0].Reason},
		{5, r.web.URL("a.test", "/"), "known", ""},
		{6, "http://outside.test/", "outside", ""}, {7, r.web.URL("a.test", "/new"), "known", ""},
	}
	if !slices.Equal(all[0].Answers, want) {
		t.Errorf("%+v, want %+v", all[0].Answers, want)
	}
}

// TestReportsComeWhileTheListIsSent sends more than one group and reads the report of the first
// before the rest is sent.
func TestReportsComeWhileTheListIsSent(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	body, list := io.Pipe()
	answered := make(chan struct{})
	go func() {
		for i := range crawl.MaxAdditions + 10 {
			if i == crawl.MaxAdditions+5 {
				<-answered
			}
			fmt.Fprintf(list, "%s%d\n", r.web.URL("a.test", "/list/"), i)
		}
		_ = list.CloseWithError(io.EOF)
	}()
	response := r.send(t, "POST", "/api/v1/urls", body)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	var got []AddReport
	for lines.Scan() {
		if got = append(got, reports(t, lines.Text())...); len(got) == 1 {
			close(answered)
		}
	}
	if lines.Err() != nil || len(got) != 2 || got[0].Added.Added != crawl.MaxAdditions || got[0].Done ||
		got[1].Added.Added != crawl.MaxAdditions+10 || !got[1].Done {
		t.Errorf("%+v, %v", got, lines.Err())
	}
}

// stuck is a crawl that stands still: it takes URLs when there is room.
type stuck struct {
	fixedCrawl
	room chan struct{}
}

func (s stuck) Add(ctx context.Context, urls []crawl.Addition) (crawl.Added, error) {
	select {
	case <-s.room:
		return crawl.Added{Added: len(urls)}, nil
	case <-ctx.Done():
		return crawl.Added{}, ctx.Err()
	}
}

func startStuck(t *testing.T) (*Client, stuck) {
	t.Helper()
	c := stuck{fixedCrawl{crawl.Status{State: "stalled", Reason: "the database is full"}}, make(chan struct{})}
	o := Options{Listen: "127.0.0.1:0", DataDir: t.TempDir(), Now: time.Now}
	s, err := Start(o, c)
	if err != nil {
		t.Fatal(err)
	}
	client, err := Dial(t.Context(), o.DataDir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(client.Close(), s.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return client, c
}

// TestAddWaitsForRoom: whoever adds URLs to a crawl that stands still is informed, and continues
// when there is room.
func TestAddWaitsForRoom(t *testing.T) {
	client, c := startStuck(t)
	var reasons []string
	sum, err := client.Add(t.Context(), []crawl.Addition{{URL: parse(t, "http://a.test/")}}, func(reason string) {
		if reasons = append(reasons, reason); len(reasons) == 1 {
			close(c.room)
		}
	})
	if err != nil || sum.Added != 1 || !slices.Contains(reasons, "the database is full") {
		t.Errorf("%+v, %v, reasons %q", sum, err, reasons)
	}
}

// TestAddIsInterrupted: a client that does not want to wait is gone, and the crawl has nothing more
// to do for it.
func TestAddIsInterrupted(t *testing.T) {
	client, _ := startStuck(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := client.Add(ctx, []crawl.Addition{{URL: parse(t, "http://a.test/")}}, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRetryOverTheAPI puts URLs back, and says what is wrong with an order.
func TestRetryOverTheAPI(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	ctx, none := t.Context(), func(crawl.Retried) error { return nil }
	want := crawl.Retried{Inspected: 5, Back: 2}
	if got, err := r.client.Retry(ctx, Retry{States: []string{"failed", "denied"}, Host: "A.test", DryRun: true},
		none); err != nil || got != want {
		t.Errorf("dry run: %+v, %v", got, err)
	}
	if got, err := r.client.Retry(ctx, Retry{States: []string{"failed", "denied"}, Host: "A.test"},
		none); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	r.finished(t)
	if n := len(r.web.Requests().Path("/missing")); n != 2 {
		t.Errorf("/missing was requested %d times", n)
	}
	if got, err := r.client.Retry(ctx, Retry{Reasons: []ReasonName{"dns_not_found"}}, none); err != nil ||
		got.Back != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	missing := crawl.Addition{URL: parse(t, r.web.URL("a.test", "/missing")), Again: true}
	if sum, err := r.client.Add(ctx, []crawl.Addition{missing}, nil); err != nil || sum != (crawl.Added{Again: 1}) {
		t.Errorf("%+v, %v", sum, err)
	}
	for body, status := range map[string]int{
		`{}`: 422, `{"dry_run":true}`: 422, `{"states":["fetched"]}`: 422, `{"reasons":["bad"]}`: 422,
		`{"pattern":"("}`: 422, `{"host":"nobody.test"}`: 404, `{"x":1}`: 422, `[]`: 422, `{`: 400, ``: 400,
	} {
		response, text := r.read(t, "POST", "/api/v1/urls/retry", strings.NewReader(body))
		if response.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", body, response.StatusCode, status, text)
		}
	}
}
