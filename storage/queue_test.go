package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// headOrdinals returns the ordinals of all heads of host 1.
func headOrdinals(t *testing.T, s *Store) (queued, due string) {
	t.Helper()
	h := must.Get(s.Heads(HeadsRequest{Host: 1, Queued: 100, Due: 100, Now: someTime.Add(time.Hour)}))(t)
	list := func(heads []Head) string {
		var all []string
		for _, h := range heads {
			all = append(all, fmt.Sprint(h.Ordinal))
		}
		return strings.Join(all, " ")
	}
	return list(h.Queued), list(h.Due)
}

// TestPriorities: URLs with a priority are due at once, by falling priority and then in the order
// of discovery, and are not behind the cursor.
func TestPriorities(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s, numbered("host.example", 0, 8)...)}
	for i, p := range []int8{0, 3, -128, 0, 3, 127, -1, 0} {
		b.Found[i].Priority = p
	}
	want := HostChange{Host: 1, Tail: 8, Backlog: Backlog{Queued: 3, Due: 5, NextDue: 1}, URLs: 8}
	assert.Equal(t, mustCommit(t, s, &b).Hosts[0], want, "touched")
	queued, due := headOrdinals(t, s)
	assert.True(t, queued == "0 3 7" && due == "5 1 4 6 2", "queued %s, due %s", queued, due)
	assert.Equal(t, s.Counters().Of(Queued), 8, "are queued")
	retry := Outcome{State: Retrying, At: someTime, Due: someTime.Add(time.Minute)}
	mustCommit(t, s, &Batch{Done: []Done{
		{Host: 1, Ordinal: 1, Priority: 3, Outcome: retry},
		{Host: 1, Ordinal: 5, Priority: 127, Outcome: Outcome{State: Fetched, At: someTime}},
		{Host: 1, Ordinal: 0, Outcome: retry},
	}})
	if queued, due := headOrdinals(t, s); queued != "3 7" || due != "4 1 0 6 2" {
		t.Errorf("after a retry: queued %s, due %s", queued, due)
	}
	mustCommit(t, s, &Batch{Hosts: []HostUpdate{{Host: 1, Cursors: []Cursor{{0, 8}}}}, Done: []Done{
		{Host: 1, Ordinal: 3, Outcome: Outcome{State: Fetched, At: someTime}}, {Host: 1, Ordinal: 7,
			Outcome: Outcome{State: Fetched, At: someTime}},
	}}) // URLs 2, 4 and 6 are queued below the cursor, which Check holds to be right
	checkClean(t, s)
}

// TestWrongPriority: an outcome with another priority than the URL's would leave a due row, so it
// is refused.
func TestWrongPriority(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s, numbered("host.example", 0, 2)...)}
	b.Found[0].Priority = 3
	mustCommit(t, s, &b)
	for _, d := range []Done{{Ordinal: 0, Priority: 2}, {Ordinal: 1, Priority: 3}} {
		d.Host, d.Outcome = 1, Outcome{State: Fetched, At: someTime}
		_, err := s.Commit(&Batch{Done: []Done{d}})
		assert.True(t, err != nil && strings.Contains(err.Error(), "no due row"), "outcome %+v: %v", d, err)
	}
}

// TestNotice: Options.Notice gets the listing of a known URL and what the store knows of the URL.
// It moves the URL's recrawl and nothing else.
func TestNotice(t *testing.T) {
	var noticed []Noticed
	soon := someTime.Add(time.Minute)
	s := openTemp(t, Options{Notice: func(n Noticed) (time.Time, [8]byte, bool) {
		noticed = append(noticed, n)
		return soon, [8]byte{9}, n.URI == "/page/0"
	}})
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("host.example", 0, 3)...)})
	fetched := Outcome{State: Fetched, Status: 200, At: someTime, Digest: 5, ETag: "e", Simhash: 6,
		Due: someTime.Add(time.Hour), History: [8]byte{1}}
	retrying := Outcome{State: Retrying, At: someTime, Due: someTime.Add(time.Hour)}
	mustCommit(t, s, &Batch{
		Done:  []Done{{Host: 1, Ordinal: 0, Outcome: fetched}, {Host: 1, Ordinal: 1, Outcome: retrying}},
		Hosts: []HostUpdate{{Host: 1, Site: []byte("site")}},
	})
	b := Batch{Found: found(t, s, numbered("host.example", 0, 3)...)}
	for i := range b.Found {
		b.Found[i].Modified, b.Found[i].At = someTime.Add(time.Second), someTime.Add(2*time.Second)
	}
	b.Found = append(b.Found, found(t, s, numbered("host.example", 0, 1)...)...) // a link says nothing
	r := mustCommit(t, s, &b)
	assert.True(t, r.Added == 0 && r.Hosts[0].NextRecrawl == uint32(soon.Unix()) && r.Hosts[0].Recrawls == 1 &&
		r.Hosts[0].NextDue == uint32(retrying.Due.Unix()), "%+v", r)
	assert.True(t, len(noticed) == 2 && noticed[0].Host == "host.example" && string(noticed[0].Site) == "site" &&
		noticed[0].Last.ETag == "e" && noticed[0].Modified.Equal(someTime.Add(time.Second)) &&
		noticed[0].At.Equal(someTime.Add(2*time.Second)), "noticed %+v", noticed)
	h, err := s.Heads(HeadsRequest{Host: 1, Recrawls: 5, Now: soon})
	must.True(t, err == nil && len(h.Recrawls) == 1, "%+v, %v", h, err)
	want := fetched
	want.Due, want.History = soon, [8]byte{9}
	got := h.Recrawls[0].Last
	assert.True(t, got.Due.Unix() == want.Due.Unix() && got.History == want.History && got.Digest == want.Digest &&
		got.Simhash == want.Simhash && got.At.Equal(want.At), "%+v, want %+v", got, want)

	// Listing a URL without a date is news only if the URL has failed.
	noticed = nil
	gone := Outcome{State: Failed, Status: 404, At: someTime, Attempts: 1}
	mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Ordinal: 2, Outcome: gone}}})
	b = Batch{Found: found(t, s, numbered("host.example", 0, 3)...)}
	for i := range b.Found {
		b.Found[i].Listed, b.Found[i].Frequency, b.Found[i].At = true, Frequency(3), someTime.Add(3*time.Second)
	}
	mustCommit(t, s, &b)
	if len(noticed) != 1 || noticed[0].URI != "/page/2" || noticed[0].Last.State != Failed {
		t.Errorf("noticed, of listed URLs: %+v", noticed)
	} else if noticed[0].Claimed != 24*time.Hour || !noticed[0].Modified.IsZero() {
		t.Errorf("noticed, of a listed URL: %+v", noticed[0])
	}
	checkClean(t, s)
}

// TestNextDue: Heads tell when the next URL is due, of all priorities, unless there are more due than
// are wanted.
func TestNextDue(t *testing.T) {
	s := openTemp(t, Options{})
	b := Batch{Found: found(t, s, numbered("a.example", 0, 6)...)}
	b.Found[4].Priority = 3
	for i, after := range []time.Duration{-time.Hour, -time.Minute, time.Hour, time.Minute, 30 * time.Second} {
		b.Found[i].Outcome = &Outcome{State: Retrying, At: someTime, Due: someTime.Add(after)}
	}
	mustCommit(t, s, &b)
	for _, test := range []struct {
		due  int
		want time.Time
	}{{5, someTime.Add(30 * time.Second)}, {2, someTime.Add(30 * time.Second)}, {1, someTime.Add(30 * time.Second)}} {
		h, err := s.Heads(HeadsRequest{Host: 1, Due: test.due, Now: someTime})
		assert.True(t, err == nil && h.NextDue == Seconds(test.want) && len(h.Due) == min(test.due, 2),
			"%d heads: %d due, the next at %d, %v, want it at %d", test.due, len(h.Due), h.NextDue, err,
			Seconds(test.want))
	}
	h, err := s.Heads(HeadsRequest{Host: 1, Due: 5, Now: someTime.Add(2 * time.Hour)})
	assert.True(t, err == nil && h.NextDue == 0 && len(h.Due) == 5, "%d due, the next at %d, %v, want 5 and none",
		len(h.Due), h.NextDue, err)
}
