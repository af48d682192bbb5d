package erase

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// TestNewErasure: every mark that names an erased host, or is about it, goes or is changed; robots
// records that name it are dropped; the recrawl plan no longer counts its pages; and every host has a
// restart hold, the erased one too when it is found again.
func TestNewErasure(t *testing.T) {
	dir := t.TempDir()
	s := must.Get(storage.Open(dir, storage.Options{}))(t)
	names := weburl.Names{Name: "b.test", Below: true}
	plan := must.Get(recrawl.New(recrawl.DefaultOptions()))(t)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var b storage.Batch
	for _, text := range []string{"http://a.test/", "http://b.test/", "http://b.test/2"} {
		u := must.Get(weburl.Parse(text))(t)
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: at})
	}
	commit := func(b *storage.Batch) {
		t.Helper()
		must.Get(s.Commit(b))(t)
	}
	commit(&b)
	b = storage.Batch{}
	for host, ordinals := range map[storage.HostID][]uint32{1: {0}, 2: {0, 1}} {
		for _, n := range ordinals {
			m := plan.Answered(&recrawl.Visit{At: at}, &recrawl.Site{})
			b.Done = append(b.Done, storage.Done{Host: host, Ordinal: n, Outcome: storage.Outcome{
				State: storage.Fetched, At: at, Due: m.Due, History: m.History,
			}})
		}
	}
	must.True(t, plan.Pages() == 3, "%d pages are planned", plan.Pages())
	encoded, _ := plan.AppendBinary(nil)
	record := func(body, final string) []byte {
		r := must.Get(robots.Record{Class: robots.ClassFound, Copy: robots.ClassFound, Body: []byte(body),
			FinalURL: final}.AppendBinary(nil))(t)
		return r
	}
	history := must.Get(robots.History{{Class: robots.ClassFound, Size: 6, Body: []byte("b.test")},
		{Class: robots.ClassFound, Size: 6, Body: []byte("a.test")}}.AppendBinary(nil))(t)
	origin := func(n int) weburl.Origin { return weburl.Origin{Scheme: "http", Host: "a.test", Port: uint16(n)} }
	b.Policies = []storage.Policy{
		{Origin: origin(1), Record: record("Sitemap: http://www.b.test/", "")},
		{Origin: origin(2), Record: record("", "http://b.test/robots.txt")},
		{Origin: origin(3), Record: record("Disallow:", "http://a.test/robots.txt")},
	}
	b.RobotsHistory = []storage.Policy{{Origin: origin(1), Record: history}, {Origin: origin(2),
		Record: history[:len(history)-1]}}
	selection := func(s sweep.Selection) []byte {
		text, _ := json.Marshal(sweep.Command{Selection: &s})
		return text
	}
	b.Marks = map[string][]byte{
		marks.Plan: encoded, marks.Paused: []byte("x"),
		marks.QueueKey + "www.b.test": []byte("k"), marks.OfQueueHost("k", "www.b.test"): {1},
		marks.QueueKey + "a.test":             []byte("b.test"),
		marks.OfQueueHost("b.test", "a.test"): {1}, marks.QueueKey + "c.test": []byte("k"),
		marks.OfQueueHost("k", "c.test"):              {1},
		storage.MarkUncommitted:                       []byte("1 http://a.test/\n2 http://b.test/\n"),
		marks.Deaths:                                  []byte("2 page http://www.b.test/\n"),
		sweep.RetryMark(1):                            selection(sweep.Selection{Host: "B.test"}),
		sweep.RetryMark(2):                            selection(sweep.Selection{Host: "a.test"}),
		frontier.MarkSeedPages + "http://www.b.test/": []byte("7"),
		frontier.MarkSeedPages + "http://a.test/":     []byte("7"),
		sweep.MarkRecheck + "2/0":                     []byte("1"), sweep.MarkRecheck + "1/0": []byte("1"),
		sweep.MarkDrop + "2": []byte("1"),
		sweep.CrashMark(2):   []byte("1"),
		sweep.CrashMark(1):   []byte("1"), sweep.MarkOffer + "2": []byte("1"), sweep.MarkDelete + "2": []byte("1"),
		marks.TDM + "http://b.test": []byte("[]"), marks.TDM + "http://a.test": []byte("[]"),
		marks.TDM + "http://a.test:81": []byte(`[{"location":"http://b.test/","tdm-reservation":1}]`),
	}
	commit(&b)
	now := at.Add(time.Hour)
	e := must.Get(newErasure(s, names, now))(t)
	must.Do(t, s.Erase(context.Background(), e, func(storage.Erased) error { return nil }))
	must.Do(t, s.Close())
	s = must.Get(storage.Open(dir, storage.Options{}))(t)
	defer s.Close()
	left := must.Get(s.Marks(""))(t)
	want := []string{sweep.CrashMark(1), marks.Deaths, marks.Held, marks.Paused, marks.Plan,
		marks.QueueKey + "c.test", marks.OfQueueHost("k", "c.test"), sweep.MarkRecheck + "1/0", sweep.RetryMark(2),
		frontier.MarkSeedPages + "http://a.test/", marks.TDM + "http://a.test", storage.MarkUncommitted}
	assert.Slice(t, slices.Sorted(maps.Keys(left)), want, "marks")
	assert.Equal(t, fmt.Sprintf("%s|%s", left[storage.MarkUncommitted], left[marks.Deaths]), "1 http://a.test/\n|",
		"uncommitted requests and deaths")
	var held time.Time
	if err := held.UnmarshalBinary(left[marks.Held]); err != nil || !held.Equal(now) {
		t.Errorf("all hosts are held since %v: %v", held, err)
	}
	after, err := recrawl.New(recrawl.DefaultOptions())
	if err == nil {
		err = after.Restore(left[marks.Plan])
	}
	assert.True(t, err == nil && after.Pages() == 1, "%d pages are planned: %v", after.Pages(), err)
	for n, kept := range []bool{1: false, 2: false, 3: true} {
		if record, err := s.Policy(origin(n)); n > 0 && (err != nil || (len(record) > 0) != kept) {
			t.Errorf("robots record %d is %q: %v", n, record, err)
		}
	}
	encoded, err = s.RobotsHistory(origin(1))
	earlier, err2 := robots.DecodeHistory(encoded)
	assert.True(t, err == nil && err2 == nil && len(earlier) == 1 && string(earlier[0].Body) == "a.test",
		"history is %+v: %v", earlier, err)
	if encoded, err := s.RobotsHistory(origin(2)); err != nil || len(encoded) > 0 {
		t.Errorf("a history that cannot be read stays: %q, %v", encoded, err)
	}
}
