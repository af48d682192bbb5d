package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestWalkSeesEveryURLOnce walks at once and in pages, and stops in between.
func TestWalkSeesEveryURLOnce(t *testing.T) {
	s := must.Get(Open(t.TempDir(), Options{}))(t)
	defer s.Close()
	g := &benchURLs{hosts: 7}
	var b Batch
	want := make(map[string]bool)
	for range 3 {
		fillBatch(s, g, 3000, &b)
		must.Get(s.Commit(&b))(t)
		for i := range b.Found {
			want[b.Found[i].URL.String()] = true
		}
	}
	must.Get(s.Commit(&Batch{Ensure: []string{"empty.example"}}))(t)
	for _, page := range []int{1 << 30, 1000, 499} {
		got := make(map[string]bool)
		at, n := Position{}, page
		for n == page {
			n = 0
			at = must.Get(s.Walk(context.Background(), at, 0, func(l *Located) error {
				if n == page {
					return ErrStop
				}
				n++
				if u := l.URL().String(); got[u] {
					t.Fatalf("%s came twice", u)
				} else {
					got[u] = true
				}
				return nil
			}))(t)
		}
		assert.Equal(t, len(got), len(want), "pages of", page, "URLs")
	}
	failure := errors.New("no")
	assert.Fails(s.Walk(context.Background(), Position{}, 0, func(*Located) error { return failure }))(t, failure,
		"error")
}

// TestWalkByState skips hosts without a URL in a state, and stops while it does.
func TestWalkByState(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{NoSync: true})
	defer mustClose(t, s)
	var b Batch
	const hosts = 2*WalkPassed + 500
	for n := range hosts {
		b.Found = append(b.Found, found(t, s, fmt.Sprintf("https://host%d.example/a", n),
			fmt.Sprintf("https://host%d.example/b", n))...)
	}
	mustCommit(t, s, &b)
	mustCommit(t, s, &Batch{Done: []Done{{Host: hosts, Outcome: Outcome{State: Failed}},
		{Host: 3, Ordinal: 1, Outcome: Outcome{State: Failed}}}})
	var got []Position
	var passed []Position
	take := func(l *Located) error {
		if l.Host == nil {
			passed = append(passed, l.At)
		} else {
			got = append(got, l.At)
		}
		return nil
	}
	must.Get(s.Walk(context.Background(), Position{}, In(Failed, Denied), take))(t)
	if want := []Position{{3, 0}, {3, 1}, {hosts, 0}, {hosts, 1}}; !slices.Equal(got, want) || len(passed) != 2 {
		t.Errorf("the walk takes %v, want %v, and says %d times that it passed hosts over", got, want, len(passed))
	}
	got = nil
	stop := func(l *Located) error {
		if l.Host == nil {
			return ErrStop
		}
		return take(l)
	}
	at, rounds := Position{}, 0
	for last := (Position{0, 1}); at != last; rounds++ {
		last = at
		var err error
		at, err = s.Walk(context.Background(), at, In(Failed), stop)
		must.True(t, err == nil, "%v", err)
	}
	assert.True(t, len(got) >= 4 && rounds >= 3, "in %d rounds the walk takes %v", rounds, got)
}

func TestParsePosition(t *testing.T) {
	for _, p := range []Position{{}, {1, 2}, {1<<32 - 1, 1<<32 - 1}} {
		assert.Returns(ParsePosition(p.String()))(t, p, "came back as")
	}
	for _, bad := range []string{"1", "1.", ".2", "1.2.3", "a.b", "-1.2", "1.+2", "99999999999.1", "1.2 "} {
		assert.Fails(ParsePosition(bad))(t, nil, bad, "was read as")
	}
}

func TestNames(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Ensure: []string{"example.org", "www.example.org", "a.www.example.org",
		"example-shop.org", "example.com", "192.0.2.1", "www.example.orgs"}})
	for _, tt := range []struct{ under, after, want string }{
		{"", "",
			"192.0.2.1 example.com example.org example-shop.org www.example.org a.www.example.org www.example.orgs"},
		{"", "example-shop.org", "www.example.org a.www.example.org www.example.orgs"},
		{"", "b.example.com", "example.org example-shop.org www.example.org a.www.example.org www.example.orgs"},
		{"example.org", "", "example.org www.example.org a.www.example.org"},
		{"example.org", "example.org", "www.example.org a.www.example.org"},
		{"www.example.org", "", "www.example.org a.www.example.org"},
		{"org", "", "example.org example-shop.org www.example.org a.www.example.org"},
		{"none.example", "", ""},
	} {
		var got []string
		err := s.Names(tt.under, tt.after, func(name string, id HostID) error {
			h, err := s.HostByID(id)
			assert.True(t, err == nil && h.Name == name, "%s is host %d, %q, %v", name, id, h.Name, err)
			got = append(got, name)
			return nil
		})
		assert.True(t, err == nil && strings.Join(got, " ") == tt.want, "under %q after %q: %v, %v, want %s", tt.under,
			tt.after, got, err, tt.want)
	}
}

// TestNamesInSteps: a walk over more names than one read returns misses none, and stops at ErrStop.
func TestNamesInSteps(t *testing.T) {
	s := openTemp(t, Options{})
	var names []string
	for i := range 2*namesPerRead + 3 {
		names = append(names, fmt.Sprintf("h%d.example", i))
	}
	mustCommit(t, s, &Batch{Ensure: names})
	var got []string
	take := func(name string, _ HostID) error {
		got = append(got, name)
		return nil
	}
	err := s.Names("", "", take)
	must.True(t, err == nil && len(got) == len(names), "%d of %d, %v", len(got), len(names), err)
	slices.Sort(got)
	slices.Sort(names)
	assert.Slice(t, got, names, "other names than were put in")
	n := 0
	if err := s.Names("", "", func(string, HostID) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("%d names after ErrStop, %v", n, err)
	}
}
