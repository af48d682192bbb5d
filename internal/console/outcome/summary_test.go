package outcome

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var someTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func counts(fetched, redirected, failed, denied, excluded, queued int) crawl.Status {
	return crawl.Status{
		URLs: map[string]int{"fetched": fetched, "redirected": redirected, "failed": failed, "denied": denied,
			"excluded": excluded, "queued": queued},
		Run: crawl.Rates{Bytes: 2048},
	}
}

// withRequisites makes n of the fetched URLs of a status requisites.
func withRequisites(s crawl.Status, n int) crawl.Status {
	s.Requisites = map[string]int{"fetched": n}
	return s
}

// givingUp adds what a run gave up URLs for.
func givingUp(s crawl.Status, failed map[string]uint64) crawl.Status {
	s.Failed = failed
	return s
}

func TestSummaries(t *testing.T) {
	limited := config.Default()
	limited.Crawl.MaxPages, limited.Crawl.MaxBytes, limited.Crawl.MaxTime = 7, 1<<20, 50*time.Minute
	later := []crawl.Postponed{{Host: "a.example", URLs: 2, Reason: "retry-after"}}
	tests := []struct {
		name  string
		max   bool
		out   Outcome
		bad   int
		wants []string
		not   string
	}{
		{"only what this run did counts", false,
			Outcome{Summary: crawl.Summary{Status: counts(7, 2, 1, 3, 1, 0), Fresh: true},
				Before: counts(2, 1, 1, 0, 0, 4), Took: 75 * time.Second}, 0,
			[]string{"Finished after 1m 15s: fetched 5 pages (2.0 KiB received) and followed 1 redirect.\n3 URLs " +
				"were denied by robots.txt, 1 URL was left out.\n",
				"  database  data/amble.db\n  output    data/output\n"}, "failed"},
		{"given up", false,
			Outcome{Summary: crawl.Summary{Status: givingUp(counts(7, 0, 2, 0, 0, 0),
				map[string]uint64{"status 404": 2}), Fresh: true}}, 0,
			[]string{"2 URLs failed.\nGiven up for: 2 status 404; amble"}, "counted"},
		{"given up and put back", false,
			Outcome{Summary: crawl.Summary{Status: givingUp(counts(7, 0, 2, 0, 0, 7),
				map[string]uint64{"status 404": 2, "status 403": 7}), Fresh: true}}, 0,
			[]string{"2 URLs failed.\nGiven up for, each time counted: 7 status 403, 2 status 404; amble"},
			"postponed"},
		{"requisites are no pages", false,
			Outcome{Summary: crawl.Summary{Status: withRequisites(counts(9, 0, 0, 0, 0, 0), 5), Fresh: true},
				Before: withRequisites(counts(3, 0, 0, 0, 0, 0), 1)}, 0,
			[]string{"Finished after 0s: fetched 2 pages and 4 requisites (2.0 KiB received).\n"}, "failed"},
		{"nothing new, with requisites", false,
			Outcome{Summary: crawl.Summary{Status: withRequisites(counts(9, 0, 0, 0, 0, 0), 1)}}, 0,
			[]string{"everything known is done, 8 pages and 1 requisite in all.\n"}, "postponed"},
		{"stopped", false,
			Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 9), Fresh: true, End: crawl.EndStopped,
				Postponed: later}, Before: counts(6, 0, 0, 0, 0, 0)}, 0,
			[]string{"Stopped after 0s: fetched 1 page (2.0 KiB received).\n9 URLs are still queued; the same " +
				"command continues with them.\n"}, "postponed"},
		{"stopped, and a host fails", false,
			Outcome{Summary: crawl.Summary{Status: counts(0, 0, 0, 0, 0, 3), End: crawl.EndStopped,
				Postponed: append(later[:1:1], crawl.Postponed{
					Host: "b.example", URLs: 1, Reason: "back-off", Cause: "dns_not_found", Failed: true})}}, 0,
			[]string{"1 host could not be fetched from at the end:\n" +
				"  b.example  1 URL    it refused or failed repeatedly; last failure: dns_not_found\n"}, "a.example"},
		{"stopped before the first request", false,
			Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 1), End: crawl.EndStopped}}, 0,
			[]string{"Nothing was fetched.\n1 URL is still queued"}, "new"},
		{"nothing new", false, Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 0)}}, 0,
			[]string{"There was nothing new to fetch: everything known is done, 7 pages in all.\n"}, "postponed"},
		{"nothing is due", false, Outcome{Again: 24 * time.Hour,
			Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 0)}}, 0,
			[]string{"Nothing is due: all that can be fetched was within 1d 0h, 7 pages in all.\n"}, "new"},
		{"nothing but postponed hosts", false,
			Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 2), Postponed: later}}, 0,
			[]string{"Nothing was fetched.\n1 host is postponed; a later run continues with them:\n",
				"  a.example  2 URLs    it demanded a pause (Retry-After)\n"}, "everything known"},
		{"the most bytes", true, Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 2), Fresh: true,
			End: crawl.EndMaxBytes}}, 0, []string{
			"crawl.max_bytes (1MiB) is reached, and 2 URLs are still queued; raise it to go on.\n"}, "postponed"},
		{"the most time", true, Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 1), Fresh: true,
			End: crawl.EndMaxTime}}, 0, []string{
			"crawl.max_time (50m 0s) is over, and 1 URL is still queued; the same command continues with them.\n",
		}, "postponed"},
		{"the most pages", true, Outcome{Summary: crawl.Summary{Status: counts(7, 0, 0, 0, 0, 2), Fresh: true,
			End: crawl.EndMaxPages, Postponed: later}}, 0,
			[]string{"fetched 7 pages (2.0 KiB received).\ncrawl.max_pages (7) is reached, and 2 URLs are still " +
				"queued; raise it to go on.\n"}, "postponed"},
		{"walls", false, Outcome{Summary: crawl.Summary{Fresh: true, Status: crawl.Status{
			URLs: map[string]int{"fetched": 1}, Walls: map[string]int{"challenge": 2, "gate": 1},
			WallMakers: map[string]int{"Cloudflare": 2, "unknown": 1}}}}, 0,
			[]string{"Hosts behind walls: 2 challenge, 1 gate; made by: 2 Cloudflare, 1 unknown; " +
				"amble hosts --state walled lists them.\n"}, "postponed"},
		{"bad seeds", false, Outcome{Summary: crawl.Summary{Status: counts(1, 0, 0, 0, 0, 0), Fresh: true}}, 2,
			[]string{"2 seeds were bad and left out"}, "one"},
	}
	for _, tt := range tests {
		c := config.Default()
		if tt.max {
			c = limited
		}
		var b bytes.Buffer
		c.DataDir = "data"
		if tt.out.End == "" {
			tt.out.End = crawl.EndDone
		}
		must.Do(t, Print(&b, &c, &tt.out, tt.bad, someTime))
		for _, want := range tt.wants {
			assert.Contains(t, b.String(), want, tt.name)
		}
		assert.True(t, !strings.Contains(b.String(), tt.not), "%s: %q should not be in\n%s", tt.name, tt.not,
			b.String())
	}
}

// Of many postponed hosts the first ten are named, and the rest are counted.
func TestManyPostponedHosts(t *testing.T) {
	var hosts []crawl.Postponed
	for i := range 25 {
		hosts = append(hosts, crawl.Postponed{Host: fmt.Sprintf("h%d.example", i), URLs: 1,
			Until: someTime.Add(time.Hour), Reason: "back-off"})
	}
	var b strings.Builder
	WritePostponed(&b, hosts, someTime)
	text := b.String()
	assert.True(t, strings.Count(text, ".example") == 10 && strings.Contains(text, "25 hosts are postponed") &&
		strings.Contains(text, "  and 15 more hosts\n") && strings.Contains(text, "it refused or failed repeatedly"),
		"%v", text)
}

// TestRequisiteRows: a status says what requisites cost that wait, and nothing of a crawl without any.
func TestRequisiteRows(t *testing.T) {
	for _, test := range []struct {
		status crawl.Status
		want   string
	}{
		{crawl.Status{}, "[]"},
		{crawl.Status{Requisites: map[string]int{"fetched": 5, "queued": 79, "retrying": 1, "denied": 2, "failed": 1},
			RequisitesFinish: 80}, "[[requisites 5 of these URLs are what pages are made of; 80 wait, " +
			"which takes 1m 20s, 3 are missing]]"},
		{crawl.Status{Requisites: map[string]int{"fetched": 1200}},
			"[[requisites 1,200 of these URLs are what pages are made of; 0 wait, 0 are missing]]"},
	} {
		assert.Equal(t, fmt.Sprint(RequisiteRows(test.status)), test.want)
	}
}

// TestResult: the result of a run says which walls hosts are behind.
func TestResult(t *testing.T) {
	s := counts(7, 0, 0, 0, 0, 9)
	s.Walls, s.WallMakers = map[string]int{"challenge": 2}, map[string]int{"Cloudflare": 1, crawl.UnknownMaker: 1}
	var r Result
	r.Take(&Outcome{Summary: crawl.Summary{Status: s}})
	var b bytes.Buffer
	must.Do(t, r.Print(&b, nil, 0))
	const want = `"walls":{"challenge":2},"wall_makers":{"Cloudflare":1,"unknown":1}`
	assert.True(t, strings.Contains(b.String(), want), "%s has no %s", b.String(), want)
}
