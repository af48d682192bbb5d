//go:build !core

package main

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
)

// TestWriteJudgement: a broken rule is named and is an error, one that was not shown is named, and a group that
// was not run is left out.
func TestWriteJudgement(t *testing.T) {
	result := func(group, name string, v crawlcheck.Verdict, gap float64) crawlcheck.Result {
		return crawlcheck.Result{Group: group, Station: group + "-" + name, Verdict: v, LeastGap: gap}
	}
	judged := crawlcheck.Report{
		Counts: map[crawlcheck.Verdict]int{crawlcheck.Holds: 2, crawlcheck.Broken: 1, crawlcheck.NotShown: 1},
		Results: []crawlcheck.Result{
			result("pace", "gap", crawlcheck.Holds, 0.15009), result("pace", "slow", crawlcheck.Broken, -0.2),
			result("walls", "403", crawlcheck.NotShown, 0), result("walls", "429", crawlcheck.Holds, 0.3),
			result("restart", "lost", crawlcheck.NotRun, 0),
		},
	}
	var b strings.Builder
	err := writeJudgement(&b, &judged)
	assert.True(t, err != nil && strings.Contains(err.Error(), "broke 1 rule,"), "the error is %v", err)
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"pace 1 1 - -200ms", "walls 1 - 1 300ms", "pace-slow broken", "walls-403 not shown",
		"2 hold and 1 are broken"} {
		assert.True(t, strings.Contains(text, want), "%q is missing in %s", want, text)
	}
	assert.True(t, !strings.Contains(text, "restart"), "a group that was not run is in %s", text)
	judged.Counts[crawlcheck.Broken] = 0
	assert.NoError(t, writeJudgement(&b, &judged), "without a broken rule the error is")
}

// TestCommandOf: the program that go run deletes is not named.
func TestCommandOf(t *testing.T) {
	const path = "example.org/amble/cmd/amble"
	devel, released := &debug.BuildInfo{Path: path, Main: debug.Module{Version: "(devel)"}},
		&debug.BuildInfo{Path: path, Main: debug.Module{Version: "v1.2.3"}}
	for _, tt := range []struct {
		file string
		info *debug.BuildInfo
		want string
	}{
		{"./bin/amble", devel, "./bin/amble"},
		{"/usr/local/bin/amble", nil, "/usr/local/bin/amble"},
		{"/tmp/go-build123/b001/exe/amble", devel, "go run " + path},
		{"/tmp/go-build123/b001/exe/amble", released, "go run " + path + "@v1.2.3"},
		{"/tmp/go-build123/b001/exe/amble", nil, "/tmp/go-build123/b001/exe/amble"},
	} {
		assert.Equal(t, commandOf(tt.file, tt.info), tt.want, tt.file)
	}
}
