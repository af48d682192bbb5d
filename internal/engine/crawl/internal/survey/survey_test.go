package survey

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

func TestSlowestHosts(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 1000} {
		var s slowest
		for i := range n {
			s.add(&frontier.View{Host: storage.HostID(i + 1), Finish: time.Duration(i*7919%n) * time.Second})
		}
		must.True(t, len(s) == min(n, slowestHosts), "%d of %d hosts are kept", len(s), n)
		for i, w := range s {
			assert.Equal(t, w.Finish, time.Duration(n-1-i)*time.Second, n, "hosts the", i+1, "th takes")
		}
	}
}

// TestRequisitesTakeTime: 80 images of a host at a delay of a second take 80 seconds, whatever other hosts have.
func TestRequisitesTakeTime(t *testing.T) {
	s := Surveyor{begun: Survey{States: map[string]int{}, table: new(inspect.Table)}}
	for _, w := range []frontier.View{
		{Host: 1, Left: 3, Requisites: 3, Delay: 10 * time.Second},
		{Host: 2, Left: 90, Requisites: 80, Delay: time.Second},
		{Host: 3, Left: 500, Delay: time.Minute},
	} {
		s.count(&w, time.Unix(1, 0), time.Hour)
	}
	assert.Equal(t, s.begun.Requisites, 80, "s")
}
