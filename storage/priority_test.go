package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// headOrdinals are the ordinals of all heads of host 1.
func headOrdinals(t *testing.T, s *Store) (queued, due string) {
	t.Helper()
	h, err := s.Heads(HeadsRequest{Host: 1, Queued: 100, Due: 100, Now: someTime.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	list := func(heads []Head) string {
		var all []string
		for _, h := range heads {
			all = append(all, fmt.Sprint(h.Ordinal))
		}
		return strings.Join(all, " ")
	}
	return list(h.Queued), list(h.Due)
}

// TestPriorities: URLs of a priority of their own are due at once, by falling
// priority and then in the order of discovery, and are not behind the cursor.
func TestPriorities(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s, numbered("host.example", 0, 8)...)}
	for i, p := range []int8{0, 3, -128, 0, 3, 127, -1, 0} {
		b.Found[i].Priority = p
	}
	if r := mustCommit(t, s, &b); r.Touched[0] != (Touched{Host: 1, Tail: 8, Queued: 3, Due: 5, NextDue: 1}) {
		t.Errorf("touched: %+v", r.Touched[0])
	}
	if queued, due := headOrdinals(t, s); queued != "0 3 7" || due != "5 1 4 6 2" {
		t.Errorf("queued %s, due %s", queued, due)
	}
	if got := s.Counters().Of(Queued); got != 8 {
		t.Errorf("%d are queued, want 8", got)
	}
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
		{Host: 1, Ordinal: 3, Outcome: Outcome{State: Fetched, At: someTime}}, {Host: 1, Ordinal: 7, Outcome: Outcome{State: Fetched, At: someTime}},
	}}) // URLs 2, 4 and 6 are queued below the cursor, which Check holds to be right
	checkClean(t, s)
}

// TestWrongPriority: an outcome with another priority than the URL's would leave
// a due row behind, so it is refused.
func TestWrongPriority(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s, numbered("host.example", 0, 2)...)}
	b.Found[0].Priority = 3
	mustCommit(t, s, &b)
	for _, d := range []Done{{Ordinal: 0, Priority: 2}, {Ordinal: 1, Priority: 3}} {
		d.Host, d.Outcome = 1, Outcome{State: Fetched, At: someTime}
		if _, err := s.Commit(&Batch{Done: []Done{d}}); err == nil || !strings.Contains(err.Error(), "no due row") {
			t.Errorf("outcome %+v: %v", d, err)
		}
	}
}
