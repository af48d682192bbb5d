package storage

import (
	"reflect"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestReadHosts reads hosts page by page into the same memory. Each is as it is alone, less what a walk leaves out.
func TestReadHosts(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s,
		"http://a.example/", "https://a.example/", "http://bb.example/1", "http://bb.example/2",
		"http://ccc.example:8080/", "http://d.example/", "http://e.example/",
	)}
	mustCommit(t, s, &b)
	mustCommit(t, s, &Batch{
		Hosts: []HostUpdate{
			{Host: 2, Politeness: []byte("polite"), Requests: 3, Bytes: 7},
			{Host: 4, Politeness: []byte("most polite"), Requests: 1, Bytes: 1},
		},
		Done: []Done{{Host: 2, Outcome: Outcome{State: Fetched, Status: 200, At: someTime}}},
	})
	for _, most := range []int{1, 2, 5, 6} {
		var p HostPage
		n := 0
		for next := HostID(1); next != NoHost; {
			next = must.Get(s.ReadHosts(&p, next, most))(t)
			for i := range p.Hosts {
				n++
				want := must.Get(s.HostByID(HostID(n)))(t)
				if got := p.Hosts[i]; !reflect.DeepEqual(withoutEmpty(got), withoutEmpty(want)) {
					t.Errorf("pages of %d: host %d is\n%+v, want\n%+v", most, n, got, want)
				}
			}
		}
		assert.True(t, n == 5, "pages of %d: %d hosts", most, n)
	}
}

// withoutEmpty makes an empty politeness nil.
func withoutEmpty(h Host) Host {
	if len(h.Politeness) == 0 {
		h.Politeness = nil
	}
	return h
}
