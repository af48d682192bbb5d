package membership

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// ErrNotTrusted means that the node may not make a request now: it cannot be sure that no other node
// makes requests to the same host.
var ErrNotTrusted = errors.New("this node may make no request now: its place in the cluster is not confirmed")

// Trust is the instant until which this node may make requests. It may be used concurrently. A nil
// *Trust never ends.
type Trust struct {
	uptime func() time.Duration
	until  atomic.Int64
}

// Until returns the instant at which the trust ends, by the clock of the node. It grows while
// heartbeats are written, and may become earlier.
func (t *Trust) Until() cluster.Instant {
	if t == nil {
		return math.MaxInt64
	}
	return cluster.Instant(t.until.Load())
}

// Left returns how much trust is left. It is not positive if there is none.
func (t *Trust) Left() time.Duration {
	if t == nil {
		return math.MaxInt64
	}
	return t.Until().Sub(cluster.Instant(t.uptime()))
}

// set sets the end of the trust and reports whether it is earlier than before.
func (t *Trust) set(until cluster.Instant) (earlier bool) {
	return t.until.Swap(int64(until)) > int64(until)
}
