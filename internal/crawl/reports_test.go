package crawl

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/boot"
	"github.com/amble-crawler/amble/internal/crawl/internal/leasebook"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/memnet"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/storage"
)

// withFetcher runs a test with a crawl of one page that only fetchers fetch, in virtual time. It
// returns what the crawl has of the page at the end.
func withFetcher(t *testing.T, set func(*Options), test func(r *remoteRun)) (o storage.Outcome) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		options := testOptions(t, web)
		options.Workers, options.ExitWhenDone = 0, false
		set(&options)
		r := startRemote(t, options, web.URL("a.test", "/"))
		test(r)
		r.end()
		o = stored(t, options.DataDir)[web.URL("a.test", "/")]
	})
	return o
}

// TestLeaseRunsOutAgainAndAgain: a URL whose leases run out is leased again, as often as a URL that
// fails is fetched, and fails then.
func TestLeaseRunsOutAgainAndAgain(t *testing.T) {
	t.Parallel()
	got := withFetcher(t, func(o *Options) { o.Frontier.MaxAttempts = 3 }, func(r *remoteRun) {
		for i := range 3 {
			began := time.Now()
			leases := r.lease(LeaseRequest{Fetcher: "x", N: 1, Wait: time.Minute, Visibility: 10 * time.Second})
			if len(leases) != 1 || time.Since(began) > 12*time.Second {
				t.Errorf("lease %d: %v after %v", i, leases, time.Since(began))
			}
		}
		if leases := r.lease(LeaseRequest{Fetcher: "x", N: 1, Wait: time.Hour}); len(leases) > 0 {
			t.Errorf("%s was leased after 3 attempts", leases[0].URL)
		}
	})
	if got.State != storage.Failed || got.Reason != reasonOf(fetch.KindCanceled) || got.Attempts != 3 {
		t.Errorf("its outcome is %+v", got)
	}
}

// TestReportTypes: a reported page of a type that fetch.content_types leaves out ends as if amble had
// fetched it.
func TestReportTypes(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]storage.State{
		"text/html": storage.Fetched, "": storage.Fetched, "video/mp4": storage.Failed, "Video/MP4; codecs=x": storage.Failed,
	} {
		got := withFetcher(t, func(o *Options) { o.Fetch.ContentTypes = []string{"text/*"} }, func(r *remoteRun) {
			l := r.lease(LeaseRequest{Fetcher: "x", N: 1})[0]
			r.report(LeaseReport{
				Fetcher: "x", ID: l.ID, Status: 200, Header: http.Header{"Content-Type": {contentType}}, HasBody: true, Body: []byte("x"),
			}, Accepted)
		})
		if got.State != want || want == storage.Failed && got.Reason != reasonOf(fetch.KindTypeNotWanted) {
			t.Errorf("%q: %+v, want %s", contentType, got, want)
		}
	}
}

// TestDeathsByReports: a page is set aside after the third death during the work on a report of it.
func TestDeathsByReports(t *testing.T) {
	t.Parallel()
	const u = "http://a.test/x"
	o := known(t, u)
	out := func(kind string) storage.Start {
		start := pageOut(t, u)
		start.Note = fmt.Sprintf("%s,1,,ID/farm/%d,%s", kind, time.Now().Add(time.Hour).UnixMilli(), u)
		return start
	}
	for i := range fatalDeaths {
		if s := stored(t, o.DataDir)[u].State; s == storage.Failed {
			t.Fatalf("it is %s after %d deaths", s, i)
		}
		die(t, o.DataDir, boot.ID(), false, out(leasebook.NoteLease), out(leasebook.NoteReport))
		reopen(t, o)
	}
	if got := stored(t, o.DataDir)[u]; got.State != storage.Failed || got.Reason != storage.ReasonCrash {
		t.Errorf("its outcome is %+v", got)
	}
}

// TestDeathsDuringLeases: a page that is only leased at a death had no part in it.
func TestDeathsDuringLeases(t *testing.T) {
	t.Parallel()
	const u = "http://a.test/x"
	o := known(t, u)
	for range fatalDeaths + 1 {
		start := pageOut(t, u)
		start.Note = fmt.Sprintf("%s,1,,ID/farm/%d,%s", leasebook.NoteLease, time.Now().Add(time.Hour).UnixMilli(), u)
		die(t, o.DataDir, boot.ID(), false, start)
		reopen(t, o)
	}
	if got := stored(t, o.DataDir)[u]; got.State != storage.Queued {
		t.Errorf("its outcome is %+v", got)
	}
}
