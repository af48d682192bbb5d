package inspect

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/robots"
)

// TestTableAdd: a row says in which state a host is, and how long it waits from when the table was
// begun, although the host was inspected later.
func TestTableAdd(t *testing.T) {
	later := now.Add(3 * time.Second)
	soon := later.Add(time.Minute)
	for _, c := range []struct {
		view  frontier.View
		state string
		next  uint32
	}{
		{frontier.View{State: "leased", Left: 1, Paused: true}, HostBusy, 0},
		{frontier.View{State: "waiting", Left: 1, Paused: true, Until: soon}, HostPaused, 63},
		{frontier.View{State: "empty", Failing: true}, HostEmpty, 0},
		{frontier.View{State: "dormant", Left: 1, Robots: robots.ReasonRule, Failing: true}, HostHeld, 0},
		{frontier.View{State: "dormant", Left: 1, Failing: true, Until: soon}, HostFailing, 63},
		{frontier.View{State: "waiting", Left: 1, Failing: true, Wall: wall.KindRefusal, Until: soon}, HostWalled, 63},
		{frontier.View{State: "waiting", Left: 1, Until: soon}, HostWaiting, 63},
		{frontier.View{State: "waiting", Left: 1, Until: later}, HostReady, 3},
		{frontier.View{State: "waiting", Left: 1, Until: now.Add(-time.Hour)}, HostReady, 0},
	} {
		c.view.Host, c.view.Delay, c.view.Finish = 7, 2*time.Second, time.Hour
		table := Table{At: now}
		table.Add(&c.view, later)
		r := table.row(7)
		assert.True(t, r != nil && HostStates()[r.State] == c.state && r.Next == c.next &&
			r.Left == uint32(c.view.Left) && r.Delay == 2 && r.Finish == 3600, "%+v: %+v, want %s and %d s", c.view, r,
			c.state, c.next)
	}
}
