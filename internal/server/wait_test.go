package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
)

// stuck is a crawl that stands still: it takes URLs when there is room.
type stuck struct {
	standing
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
	c := stuck{standing{crawl.Status{State: "stalled", Reason: "the database is full"}}, make(chan struct{})}
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

// TestAddWaitsForRoom: whoever adds URLs to a crawl that stands still is told so, and goes on when there is room.
func TestAddWaitsForRoom(t *testing.T) {
	client, c := startStuck(t)
	var told []string
	sum, err := client.Add(t.Context(), []crawl.Addition{{URL: parse(t, "http://a.test/")}}, func(reason string) {
		if told = append(told, reason); len(told) == 1 {
			close(c.room)
		}
	})
	if err != nil || sum.Added != 1 || !slices.Contains(told, "the database is full") {
		t.Errorf("%+v, %v, told %q", sum, err, told)
	}
}

// TestAddIsInterrupted: a client that does not want to wait is gone, and the crawl has nothing more to do for it.
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
	r.settled(t)
	ctx, none := t.Context(), func(crawl.Retried) error { return nil }
	want := crawl.Retried{Looked: 5, Back: 2}
	if got, err := r.client.Retry(ctx, Retry{States: []string{"failed", "denied"}, Host: "A.test", DryRun: true}, none); err != nil || got != want {
		t.Errorf("dry run: %+v, %v", got, err)
	}
	if got, err := r.client.Retry(ctx, Retry{States: []string{"failed", "denied"}, Host: "A.test"}, none); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	r.settled(t)
	if n := len(r.web.Requests().Path("/missing")); n != 2 {
		t.Errorf("/missing was requested %d times", n)
	}
	if got, err := r.client.Retry(ctx, Retry{Reasons: []ReasonName{"dns_not_found"}}, none); err != nil || got.Back != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	missing := crawl.Addition{URL: parse(t, r.web.URL("a.test", "/missing")), Again: true}
	if sum, err := r.client.Add(ctx, []crawl.Addition{missing}, nil); err != nil || sum != (crawl.Added{Again: 1}) {
		t.Errorf("%+v, %v", sum, err)
	}
	for body, status := range map[string]int{
		`{}`: 422, `{"dry_run":true}`: 422, `{"states":["fetched"]}`: 422, `{"reasons":["bad"]}`: 422, `{"pattern":"("}`: 422, `{"host":"nobody.test"}`: 404, `{"x":1}`: 422, `[]`: 422, `{`: 400, ``: 400,
	} {
		response, text := r.read(t, "POST", "/api/v1/urls/retry", strings.NewReader(body))
		if response.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", body, response.StatusCode, status, text)
		}
	}
}
