package frontier

import "testing"

// Clients of the API rely on the names of the states.
func TestStateNames(t *testing.T) {
	want := map[state]string{
		empty: "idle", dormant: "dormant", woken: "called", loading: "loading",
		resolving: "resolving", waiting: "waiting",
		limited: "crowded", leased: "leased", waitingForRobots: "parked", overBudget: "shelved", recrawlOnly: "resting",
		waitingToRecrawl: "renewing",
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
