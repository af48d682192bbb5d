package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// now is when the tests look.
var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func testOptions() Options {
	return Options{
		Politeness: func(string) *politeness.Options { o := politeness.DefaultOptions(); return &o },
		Robots:     robots.DefaultOptions(), Tokens: []string{"amble"}, Obey: true,
		Now: func() time.Time { return now },
	}
}

func commit(t *testing.T, s *storage.Store, b storage.Batch) {
	t.Helper()
	must.Get(s.Commit(&b))(t)
}

func found(t *testing.T, s *storage.Store, texts ...string) (all []storage.Found) {
	t.Helper()
	for _, text := range texts {
		u := testkit.Parse(t, text)
		all = append(all, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now.Add(-time.Hour)})
	}
	return all
}

func policyOf(t *testing.T, origin, body string) storage.Policy {
	t.Helper()
	record := robots.Record{
		Class: robots.ClassFound, Copy: robots.ClassFound, Status: 200, Body: []byte(body), FinalURL: origin +
			"/robots.txt",
		Fetched: now.Add(-time.Minute), Expires: now.Add(time.Hour), Refresh: now.Add(time.Hour),
	}
	encoded := must.Get(record.AppendBinary(nil))(t)
	return storage.Policy{Origin: testkit.Parse(t, origin+"/").Origin(), Record: encoded}
}

func polite(t *testing.T, s politeness.State) []byte {
	t.Helper()
	return must.Get(s.AppendBinary(nil))(t)
}

// fill makes a store with a host in each state that a store alone can tell of.
func fill(t *testing.T) *storage.Store {
	s := testkit.OpenStore(t)
	commit(t, s, storage.Batch{Found: found(t, s, "http://ready.test/1", "http://ready.test/2", "http://ready.test/3",
		"http://done.test/", "http://slow.test/", "https://slow.test/private", "http://sick.test/",
		"http://closed.test/")})
	ids := map[string]storage.HostID{}
	must.Do(t, s.Hosts(func(h *storage.Host) error { ids[h.Name] = h.ID; return nil }))
	commit(t, s, storage.Batch{
		Done: []storage.Done{
			{Host: ids["done.test"], Ordinal: 0, Outcome: storage.Outcome{
				State: storage.Fetched, Status: 200, At: now, Bytes: 5, Digest: 0x2cf24dba5fb0a30e, ETag: `"x"`,
				Modified: "yesterday"}},
			{Host: ids["ready.test"], Ordinal: 1, Outcome: storage.Outcome{
				State: storage.Failed, Reason: storage.ReasonFetch + storage.Reason(fetch.KindTLS), At: now,
				Attempts: 3}},
			{Host: ids["ready.test"], Ordinal: 2,
				Outcome: storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: 9, At: now}},
		},
		Hosts: []storage.HostUpdate{
			{Host: ids["slow.test"], Politeness: polite(t,
				politeness.State{LastEnd: now.Add(-time.Second),
					Demands: politeness.Demands{Delay: 30 * time.Second, Line: politeness.Line{Number: 7}}})},
			{Host: ids["sick.test"], Politeness: polite(t, politeness.State{
				LastEnd: now, Holds: []politeness.Hold{{Until: now.Add(time.Hour), Length: time.Hour,
					Reason: politeness.ReasonRetryAfter, Header: "3600"}}, FailingSince: now.Add(-time.Minute)})},
			{Host: ids["done.test"], Requests: 2, Bytes: 700},
		},
		Policies: []storage.Policy{
			policyOf(t, "http://slow.test", "User-agent: other\nCrawl-delay: 30\n\nUser-agent: *\nDisallow: /x\n# "+
				"slowly\ncrawl-delay : 30\n"),
			policyOf(t, "https://slow.test", "User-agent: *\nDisallow: /private\n"),
			policyOf(t, "http://closed.test", "User-agent: *\nDisallow: /\n"),
		},
	})
	return s
}

// listed are the names and states of a query's hosts.
func listed(t *testing.T, v *View, q HostQuery) (got []string, matching int) {
	t.Helper()
	matching = must.Get(v.Hosts(context.Background(), q, func(h *Host) error {
		got = append(got, strings.TrimSuffix(h.Host, ".test")+" "+h.State)
		return nil
	}))(t)
	return got, matching
}

func TestHosts(t *testing.T) {
	v := New(fill(t), testOptions())
	for _, c := range []struct {
		query    HostQuery
		want     string
		matching int
	}{
		{HostQuery{Sort: "name", Limit: 10}, "closed held, done idle, ready ready, sick failing, slow waiting", 5},
		{HostQuery{Sort: SortFound}, "ready ready, done idle, slow waiting, sick failing, closed held", 5},
		{HostQuery{Sort: "urls", Limit: 2}, "ready ready, slow waiting", 5},
		{HostQuery{Limit: 1}, "slow waiting", 5},
		{HostQuery{Sort: "bytes", Limit: 1}, "done idle", 5},
		{HostQuery{Sort: "requests", Limit: 1}, "done idle", 5},
		{HostQuery{Sort: "delay", Limit: 1}, "slow waiting", 5},
		{HostQuery{Sort: "finish", Limit: 2}, "sick failing, slow waiting", 5},
		{HostQuery{Sort: "next", Limit: 9}, "closed held, ready ready, slow waiting, sick failing, done idle", 5},
		{HostQuery{State: HostHeld, Sort: "name", Limit: 9}, "closed held", 1},
		{HostQuery{State: HostReady, Sort: SortFound}, "ready ready", 1},
		{HostQuery{State: HostFailing, Limit: 9}, "sick failing", 1},
		{HostQuery{State: "trouble", Limit: 9}, "sick failing", 1}, // its name in earlier versions
		{HostQuery{Sort: SortFound, Limit: 2}, "ready ready, done idle", 3},
		{HostQuery{Sort: "failures", Limit: 1}, "ready ready", 5},
		{HostQuery{Sort: "name", Under: "test", Contains: "sick", Limit: 9}, "sick failing", 1},
		{HostQuery{Contains: "sl", Limit: 9}, "slow waiting", 1},
		{HostQuery{Under: "done.test", Sort: SortFound}, "done idle", 1},
	} {
		got, matching := listed(t, v, c.query)
		if text := strings.Join(got, ", "); text != c.want || matching != c.matching {
			t.Errorf("%+v: %s (%d), want %s (%d)", c.query, text, matching, c.want, c.matching)
		}
	}
	for _, q := range []HostQuery{{}, {Limit: -1}, {Limit: MaxSorted + 1}, {State: "well", Limit: 1},
		{Sort: "beauty", Limit: 1}} {
		assert.Fails(v.Hosts(context.Background(), q, nil))(t, nil, q, "is no error")
	}
}

// More hosts than a page: the heap must keep the right ones.
func TestManyHostsAreRanked(t *testing.T) {
	s := testkit.OpenStore(t)
	var texts []string
	for i := range 3*LivePage + 7 {
		for n := range i%11 + 1 {
			texts = append(texts, fmt.Sprintf("http://h%04d.test/%d", i, n))
		}
	}
	commit(t, s, storage.Batch{Found: found(t, s, texts...)})
	got, matching := listed(t, New(s, testOptions()), HostQuery{Sort: "urls", Limit: 3})
	if text := strings.Join(got, ", "); text != "h0010 ready, h0021 ready, h0032 ready" || matching != 3*LivePage+7 {
		t.Errorf("%s of %d", text, matching)
	}
}

// What the running crawl says counts more than what is stored.
func TestLiveHosts(t *testing.T) {
	o := testOptions()
	requests := 0
	o.Live = func(_ context.Context, ids []storage.HostID) (live []frontier.View, _ error) {
		for _, id := range ids {
			requests++
			switch id {
			case 1:
				live = append(live, frontier.View{Host: id, State: "leased", InFlight: 1, Delay: time.Second})
			case 3:
				live = append(live, frontier.View{Host: id, State: "dormant", Robots: robots.ReasonUnreachable,
					Next: now.Add(time.Minute)})
			case 4:
				live = append(live, frontier.View{Host: id, State: "waiting", Active: true,
					Polite: politeness.Explanation{Delay: 2 * time.Second}, Delay: 2 * time.Second})
			}
		}
		return live, nil
	}
	v := New(fill(t), o)
	got, _ := listed(t, v, HostQuery{Sort: SortFound})
	text := strings.Join(got, ", ")
	assert.True(t, text == "ready busy, done idle, slow held, sick ready, closed held" && requests == 5,
		"%s, %d requests", text, requests)
	h, err := v.Host(context.Background(), "READY.test:8080")
	assert.True(t, err == nil && h.InFlight == 1 && h.FrontierState == "leased" && h.State == HostBusy, "%+v, %v", h,
		err)
	broken := errors.New("broken")
	o.Live = func(context.Context, []storage.HostID) ([]frontier.View, error) { return nil, broken }
	assert.Fails(New(fill(t), o).Hosts(context.Background(), HostQuery{Limit: 1}, nil))(t, broken, "the error")
}

func TestHostStory(t *testing.T) {
	v := New(fill(t), testOptions())
	h := must.Get(v.Host(context.Background(), "slow.test"))(t)
	assert.True(t, h.Politeness.DelayReason == "crawl-delay" && h.Politeness.Delay == 30 &&
		h.Politeness.Until.Equal(now.Add(29*time.Second)) &&
		h.Politeness.Source == "http://slow.test/robots.txt line 7: crawl-delay : 30", "politeness: %+v", h.Politeness)
	assert.True(t, h.State == HostWaiting && h.Waiting == 2 && h.Finish == 59 && len(h.Origins) == 2, "%+v", h)
	first, second := h.Origins[0], h.Origins[1]
	assert.True(t, first.Robots.CrawlDelay != nil && *first.Robots.CrawlDelay == 30 &&
		first.Robots.CrawlDelayLine == 7 && first.Robots.Group == "*" && first.Queued == 1, "%+v", first)
	assert.True(t, second.Origin == "https://slow.test" && second.Robots.CrawlDelay == nil &&
		second.Robots.Decision == "ask", "%+v", second)
	sick, err := v.Host(context.Background(), "sick.test")
	assert.True(t, err == nil && sick.Politeness.Reason == "retry-after" && sick.Politeness.Source != "" &&
		!sick.FailingSince.IsZero() && sick.Reason == "retry-after", "%+v, %v", sick, err)
	assert.Fails(v.Host(context.Background(), "nobody.test"))(t, ErrUnknown, "the error")
}

func TestHostAsJSONAndBack(t *testing.T) {
	v := New(fill(t), testOptions())
	h := must.Get(v.Host(context.Background(), "ready.test"))(t)
	body, err := json.Marshal(h)
	assert.True(t, err == nil && bytes.Contains(body, []byte(`"urls":{"denied":1,"failed":1,"queued":1}`)), "%s, %v",
		body, err)
	var back HostStory
	if err := json.Unmarshal(body, &back); err != nil || back.URLs != h.URLs || back.Host.Host != "ready.test" {
		t.Errorf("%+v, %v", back, err)
	}
}
