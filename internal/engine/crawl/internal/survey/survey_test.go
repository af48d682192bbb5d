package survey

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

func TestSlowestHosts(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 1000} {
		var s slowest
		for i := range n {
			s.add(&frontier.View{Host: storage.HostID(i + 1), Finish: time.Duration(i*7919%n) * time.Second})
		}
		if len(s) != min(n, slowestHosts) {
			t.Fatalf("%d of %d hosts are kept", len(s), n)
		}
		for i, w := range s {
			if w.Finish != time.Duration(n-1-i)*time.Second {
				t.Errorf("of %d hosts the %dth takes %v", n, i+1, w.Finish)
			}
		}
	}
}
