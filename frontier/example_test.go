package frontier_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// bot is a crawler in less than a hundred lines: the frontier has a queue and a limiter for each host, and asks for
// robots.txt before pages; the store knows what is done.
type bot struct {
	f       *frontier.Frontier
	store   *storage.Store
	options robots.Options
	client  http.Client
	now     time.Time // a real crawler reads the clock
}

const token = "examplebot"

var links = regexp.MustCompile(`href="([^"]*)"`)

// open goes on with the crawl in a directory.
func open(dir string, now time.Time, web http.RoundTripper) *bot {
	o := frontier.DefaultOptions()
	o.Tokens, o.NoLookups = []string{token}, true // the client looks names up
	b := &bot{now: now, options: o.Robots, client: http.Client{Transport: web}}
	b.f = must(frontier.New(o, frontier.NewScope(frontier.ModeAny, nil, nil), now))
	b.store = must(storage.Open(dir, storage.Options{}))
	check(b.store.Hosts(func(h *storage.Host) error { return b.f.Restore(h, now) }))
	return b
}

// crawl makes a number of requests at most, and ends when no URL is left.
func (b *bot) crawl(most int, seed string) {
	b.commit(storage.Batch{}, b.found(storage.Found{}, seed))
	for waits := true; waits && most > 0; {
		l, leased := b.f.Next(b.now)
		wants, found := b.f.TakeWants(), []storage.Found(nil)
		for i := range wants {
			b.load(&wants[i])
		}
		var wake time.Time
		if leased {
			most--
			found = b.fetch(&l)
		} else if wake, waits = b.f.NextWake(); waits && len(wants) == 0 {
			b.now = wake // a real crawler sleeps, or takes what another goroutine has fetched
		}
		b.commit(b.f.TakeBatch(), found)
	}
}

func (b *bot) commit(batch storage.Batch, found []storage.Found) {
	batch.Found = found
	b.f.Committed(&batch, must(b.store.Commit(&batch)), b.now)
}

// found is a link of a page, or a seed.
func (b *bot) found(page storage.Found, ref string) []storage.Found {
	u, err := page.URL.Resolve(ref)
	if err != nil {
		return nil
	}
	return []storage.Found{{URL: u, Fingerprint: b.store.Fingerprint(u), Depth: page.Depth + 1, At: b.now}}
}

// load reads what the frontier wants of a host.
func (b *bot) load(want *frontier.LoadRequest) {
	l := frontier.Load{At: want.Now, Host: must(b.store.HostByID(want.Host))}
	for i, queue := range l.Host.Queues {
		q, to := frontier.QueueRequest{From: queue.Cursor, Max: want.Max}, frontier.QueueLoad{}
		if i < len(want.Queues) {
			q = want.Queues[i]
		}
		to.Heads = must(b.store.Heads(storage.HeadsRequest{
			Host: want.Host, Origin: uint8(i), From: q.From, Queued: q.Max, Due: want.Due, Now: want.Now}))
		if text := must(b.store.Policy(queue.Origin)); len(text) > 0 {
			to.Record = must(robots.DecodeRecord(text))
			to.Rules = to.Record.Rules(token)
		}
		l.Queues = append(l.Queues, to)
	}
	check(b.f.Loaded(&l, b.now))
}

// fetch makes a request, and returns the links of the page.
func (b *bot) fetch(l *frontier.Lease) (found []storage.Found) {
	if l.Kind == frontier.Match { // of a URL and a robots.txt that takes long
		check(b.f.CompleteMatch(l.ID, frontier.MatchReport{End: b.now, Verdict: l.Rules.Match(l.Head.RequestURI)}))
		return nil
	}
	end := frontier.RequestEnd{Report: frontier.Report{Sent: true, End: b.now, Signal: politeness.SignalUnreachable}}
	outcome := storage.Outcome{State: storage.Failed, At: b.now}
	file := robots.Outcome{URL: l.URL.String(), Failure: robots.FailureConnect}
	request := must(http.NewRequest(http.MethodGet, l.URL.String(), nil))
	request.Header.Set("User-Agent", token)
	if response, err := b.client.Do(request); err == nil {
		end.Signal, file.Failure, file.Status = politeness.SignalOK, robots.FailureNone, response.StatusCode
		end.RetryAfter, _ = politeness.ParseRetryAfter(response.Header.Get("Retry-After"), b.now)
		if file.Body, err = io.ReadAll(io.LimitReader(response.Body, robots.MaxBody)); err != nil {
			file.Failure = robots.FailureTransfer
		} else if response.StatusCode == http.StatusOK {
			outcome.State = storage.Fetched
		}
		outcome.Status = uint16(response.StatusCode)
		_ = response.Body.Close()
	}
	if l.Kind == frontier.Robots {
		record, _ := b.options.Next(l.Robots.Previous, file, b.now)
		rules := record.Rules(token)
		check(b.f.CompleteRobots(l.ID, frontier.RobotsReport{RequestEnd: end, Record: record, Rules: rules}))
		return nil
	}
	for _, link := range links.FindAllSubmatch(file.Body, -1) {
		found = append(found, b.found(storage.Found{URL: l.URL, Depth: l.Head.Depth}, string(link[1]))...)
	}
	check(b.f.CompletePage(l.ID, frontier.PageReport{RequestEnd: end, Outcome: outcome}))
	return found
}

// Example crawls a site with a Crawl-delay in two processes. The second one goes on where the first one was: it keeps
// the delay, and requests nothing again.
func Example() {
	dir := must(os.MkdirTemp("", "crawl"))
	defer os.RemoveAll(dir)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, requests := range []int{3, 100} {
		b := open(dir, now, site{
			"/robots.txt": "User-agent: *\nCrawl-delay: 20\nDisallow: /private\n",
			"/":           `<a href="a">A</a> <a href="/private/b">B</a> <a href="c">C</a>`,
		})
		b.crawl(requests, "http://one.test/")
		check(b.store.Close())
		now = b.now
		fmt.Println(now.Format(time.TimeOnly))
	}
	// Output:
	// /robots.txt
	// /
	// /a
	// 12:00:40
	// /c
	// 12:01:00
}

// site is a web without a network, by path.
type site map[string]string

func (s site) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Println(r.URL.Path)
	w := httptest.NewRecorder()
	_, _ = io.WriteString(w, s[r.URL.Path])
	return w.Result(), nil
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
