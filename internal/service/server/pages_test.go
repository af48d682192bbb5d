package server

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestMergeHosts: the first hosts of all pages come first, and what is left of a page is known.
func TestMergeHosts(t *testing.T) {
	page := func(matching int, waiting ...uint32) (p inspect.HostPage) {
		p.Matching = matching
		for _, n := range waiting {
			p.Hosts = append(p.Hosts, inspect.Host{Waiting: n})
		}
		return p
	}
	var all hostsOfAll
	taken := all.merge(map[int]inspect.HostPage{
		0: page(3, 9, 3, 1), 1: page(0), 2: page(2, 8, 7),
	}, compareHosts("waiting"), 4)
	var waiting []uint32
	for i := range all.Hosts {
		waiting = append(waiting, all.Hosts[i].Waiting)
	}
	assert.True(t, slices.Equal(waiting, []uint32{9, 8, 7, 3}) && all.Matching == 5 && taken[0] == 2 && taken[2] == 2,
		"%v, %v, %d", waiting, taken, all.Matching)
	for _, sort := range inspect.HostSorts() {
		assert.Equal(t, (compareHosts(sort) == nil), (sort == inspect.SortFound), sort, "has no order")
	}
}

// FuzzHostCursor: whatever clients send is a cursor of this cluster, or refused.
func FuzzHostCursor(f *testing.F) {
	f.Add("")
	f.Add(hostCursor{1: "a.b", 0: ""}.String())
	f.Add("eyI5IjoiIn0")
	f.Add(hostCursor{0: strings.Repeat("a", maxCursor)}.String())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseHostCursor(text, []int{0, 1})
		if err != nil {
			assert.True(t, errors.As(err, new(errQuery)) && !strings.Contains(err.Error(), "%!"), "%v", err)
			return
		}
		for shard := range c {
			assert.True(t, shard >= 0 && shard <= 1, "%q: shard %d", text, shard)
		}
		if again, err := parseHostCursor(c.String(), []int{0, 1}); len(c) > 0 &&
			(err != nil || !reflect.DeepEqual(again, c)) {
			t.Errorf("%q: %v, %v, %v", text, c, again, err)
		}
	})
}

// TestSumHistory: instants of nodes that are a step apart are one, and none is summed up in part.
func TestSumHistory(t *testing.T) {
	part := func(at ...int64) History {
		h := newHistory()
		for _, instant := range at {
			h.add(&Point{At: instant, Pages: 1, Known: 10})
		}
		return h
	}
	sum := sumHistory(map[string]History{"a": part(100, 112, 124), "b": part(105, 117), "c": part()}, 12)
	assert.True(t, slices.Equal(sum.At, []int64{96, 108}) && slices.Equal(sum.Known, []int{20, 20}) &&
		slices.Equal(sum.Pages, []float64{2, 2}), "%+v", sum)
}
