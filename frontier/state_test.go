package frontier

import "testing"

// Clients of the API rely on the names of the states.
func TestStateNames(t *testing.T) {
	want := map[state]string{
		empty: "empty", dormant: "dormant", woken: "woken", loading: "loading",
		resolving: "resolving", waiting: "waiting",
		limited: "limited", leased: "leased", waitingForRobots: "waiting for robots", overBudget: "over budget",
		recrawlOnly:      "recrawl only",
		waitingToRecrawl: "waiting to recrawl",
	}
	if len(want) != states {
		t.Errorf("%d states are named, there are %d", len(want), states)
	}
	for s, name := range want {
		if s.String() != name {
			t.Errorf("state %d is %q, should be %q", s, s, name)
		}
	}
}
