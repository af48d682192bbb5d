package crawl

import (
	"reflect"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestStatusAdd: each number of a part reaches the sum, and the state is that of the part that needs
// somebody most.
func TestStatusAdd(t *testing.T) {
	at := time.Unix(1_790_000_000, 0).UTC()
	part := func(state string, n int) *Status {
		return &Status{
			State: state, Reason: state, End: End(state), At: at, Started: at, Since: at.Add(time.Duration(n)),
			URLs:  map[string]int{"queued": n},
			Hosts: n, HostStates: map[string]int{"idle": n}, Held: map[string]int{"x": n}, InFlight: n,
			Requests: uint64(n), Bytes: uint64(n), Traps: map[string]uint64{"x": uint64(n)},
			Statuses: map[string]uint64{"x": uint64(n)}, Errors: map[string]uint64{"x": uint64(n)},
			Failed: map[string]uint64{"x": uint64(n)}, PagesPerSec: float64(n), BytesPerSec: float64(n),
			Pace: tally.Pace{Gaps: uint64(n), Violations: uint64(n),
				Buckets: []tally.PaceBucket{{Label: "a", Count: uint64(n)}}},
			Limits: Limits{MaxRate: float64(n), Bandwidth: int64(n), RateWait: float64(n), BandwidthWait: float64(n),
				Received: uint64(n), ExitWhenDone: true},
			Run: Rates{Pages: uint64(n), Requisites: uint64(n), Requests: uint64(n), Errors: uint64(n),
				Bytes:  uint64(n),
				Yield:  recrawl.Yield{Recrawls: uint64(n), Unchanged: uint64(n), UnchangedBytes: uint64(n)},
				Robots: uint64(n), Added: uint64(n), Outside: uint64(n), Commits: uint64(n)},
			Finish: float64(n), Slowest: []SlowHost{{Host: state, Finish: float64(n)}}, Parked: n,
			Walls: map[string]int{"x": n}, WallMakers: map[string]int{"x": n}, Slowdowns: []Slowdown{{Address: state}},
			Requisites: map[string]int{"queued": n}, RequisitesFinish: float64(n),
			DeadSeeds: &DeadSeeds{Count: n, First: []SeedResult{{URL: state}}},
		}
	}
	var sum Status
	sum.Add(part("running", 2))
	sum.Add(part("stalled", 3))
	sum.Add(part("paused", 1))
	want := part("stalled", 6)
	want.Since, want.Finish, want.RequisitesFinish = at.Add(3), 3, 3
	want.Slowest = []SlowHost{{Host: "stalled", Finish: 3}, {Host: "running", Finish: 2}, {Host: "paused", Finish: 1}}
	want.DeadSeeds.First = []SeedResult{{URL: "running"}, {URL: "stalled"}, {URL: "paused"}}
	want.Slowdowns = []Slowdown{{Address: "running"}, {Address: "stalled"}, {Address: "paused"}}
	if !reflect.DeepEqual(&sum, want) {
		t.Errorf("%+v\n%+v", sum, *want)
	}
	var moves Status // a part that ends, as a shard that goes to another node, does not end the others
	moves.Add(part("stopping", 1))
	moves.Add(part("paused", 1))
	assert.Equal(t, moves.State, "paused", "a part is stopping, one is paused")
	for i := range reflect.TypeFor[Status]().NumField() {
		switch f := reflect.TypeFor[Status]().Field(i); f.Name {
		case "Fetchers", "OptOuts", "DataDir", "OutputDir", "ProductToken": // no sums
		default:
			assert.True(t, !reflect.ValueOf(*want).Field(i).IsZero(), "nothing is known of %s", f.Name)
		}
	}
}
