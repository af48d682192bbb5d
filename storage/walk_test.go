package storage

import (
	"context"
	"errors"
	"testing"
)

// TestWalkSeesEveryURLOnce walks in one go and in pages, and stops in between.
func TestWalkSeesEveryURLOnce(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := &benchURLs{hosts: 7}
	var b Batch
	want := make(map[string]bool)
	for range 3 {
		fillBatch(s, g, 3000, &b)
		if _, err := s.Commit(&b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Found {
			want[b.Found[i].URL.String()] = true
		}
	}
	if _, err := s.Commit(&Batch{Ensure: []string{"empty.example"}}); err != nil {
		t.Fatal(err)
	}
	for _, page := range []int{1 << 30, 1000, 499} {
		got := make(map[string]bool)
		at, n := Position{}, page
		for n == page {
			n = 0
			at, err = s.Walk(context.Background(), at, func(l *Located) error {
				if n == page {
					return ErrStop
				}
				n++
				if u := l.URL.String(); got[u] {
					t.Fatalf("%s came twice", u)
				} else {
					got[u] = true
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(want) {
			t.Errorf("pages of %d: %d URLs, want %d", page, len(got), len(want))
		}
	}
	failure := errors.New("no")
	if _, err := s.Walk(context.Background(), Position{}, func(*Located) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
}

func TestParsePosition(t *testing.T) {
	for _, p := range []Position{{}, {1, 2}, {1<<32 - 1, 1<<32 - 1}} {
		if got, err := ParsePosition(p.String()); err != nil || got != p {
			t.Errorf("%v came back as %v, %v", p, got, err)
		}
	}
	for _, bad := range []string{"1", "1.", ".2", "1.2.3", "a.b", "-1.2", "1.+2", "99999999999.1", "1.2 "} {
		if p, err := ParsePosition(bad); err == nil {
			t.Errorf("%q was read as %v", bad, p)
		}
	}
}
