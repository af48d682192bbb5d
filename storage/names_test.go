package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Ensure: []string{"example.org", "www.example.org", "a.www.example.org", "example-shop.org", "example.com", "192.0.2.1", "www.example.orgs"}})
	for _, tt := range []struct{ under, after, want string }{
		{"", "", "192.0.2.1 example.com example.org example-shop.org www.example.org a.www.example.org www.example.orgs"},
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
			if h, err := s.HostByID(id); err != nil || h.Name != name {
				t.Errorf("%s is host %d, %q, %v", name, id, h.Name, err)
			}
			got = append(got, name)
			return nil
		})
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("under %q after %q: %v, %v, want %s", tt.under, tt.after, got, err, tt.want)
		}
	}
}

// A walk of more names than one read holds misses none, and stops when told to.
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
	if err := s.Names("", "", take); err != nil || len(got) != len(names) {
		t.Fatalf("%d of %d, %v", len(got), len(names), err)
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Error("other names than were put in")
	}
	n := 0
	if err := s.Names("", "", func(string, HostID) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("%d names after ErrStop, %v", n, err)
	}
}
