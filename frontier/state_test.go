package frontier

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// Clients of the API rely on the names of the states.
func TestStateNames(t *testing.T) {
	want := map[state]string{
		empty: "empty", dormant: "dormant", woken: "woken", loading: "loading",
		resolving: "resolving", waiting: "waiting",
		limited: "limited", leased: "leased", waitingForRobots: "waiting for robots", overBudget: "over budget",
		recrawlOnly:      "recrawl only",
		waitingToRecrawl: "waiting to recrawl",
	}
	assert.Equal(t, len(want), states, "states are named, there")
	for s, name := range want {
		assert.Equal(t, s.String(), name, "state", s, "is", s, "should be")
	}
}
