package seedbook

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestRoundsOfDeadSeeds: in the first minute a round of the few seeds begins each second, and later one in ten.
func TestRoundsOfDeadSeeds(t *testing.T) {
	set := seeds.NewSet(seeds.ModeHost).With([]seeds.Seed{{URL: testkit.Parse(t, "http://a.test/")}})
	began, rounds := time.Unix(1000, 0), 0
	f := DeadFinder{Store: testkit.OpenStore(t), Began: began, Owns: func(string) bool {
		rounds++
		return true
	}}
	run := func(from, to int) int {
		rounds = 0
		for s := from; s < to; s++ {
			f.Step(set, began.Add(time.Duration(s)*time.Second))
		}
		return rounds
	}
	assert.Equal(t, run(0, 60), 60, "rounds of the first minute")
	assert.AtMost(t, run(3600, 3660), 7, "rounds of a later minute")
	assert.AtLeast(t, run(3660, 3720), 5, "rounds of the minute after it")
}
