//go:build !core

package main

import (
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// A page is fetched again because the victim had fetched it, and for no other reason. One that nobody can
// fetch may be tried as often as the crawler likes.
func TestClusterDemoRepeats(t *testing.T) {
	request := func(node, path string) testweb.Request {
		return testweb.Request{Host: "a.test", Path: path, Node: node}
	}
	expected := func(path string, status, tries int) testweb.Expected {
		return testweb.Expected{Ref: testweb.Ref{Host: "a.test", Path: path}, Status: status, Tries: tries}
	}
	c := clusterDemo{victim: &demoNode{name: "node2"}, facts: testweb.Facts{Must: []testweb.Expected{
		expected("/once", 200, 1), expected("/flaky", 200, 2), expected("/killed", 200, 1), expected("/twice", 200, 1),
		expected("/cut", 0, 1),
	}}}
	log := testweb.Log{
		request("node1", "/once"), request("node1", "/flaky"), request("node1", "/flaky"),
		request("node2", "/killed"), request("node1", "/killed"),
		request("node1", "/twice"), request("node3", "/twice"),
		request("node1", "/cut"), request("node1", "/cut"), request("node1", "/cut"),
	}
	again, wrong := c.repeats(log)
	if want := []string{"a.test/twice: fetched 2 times, must be 1"}; again != 1 || !slices.Equal(wrong, want) {
		t.Errorf("%d pages again, wrong: %q; want 1, %q", again, wrong, want)
	}
}
