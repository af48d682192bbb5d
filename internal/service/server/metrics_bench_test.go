package server

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// BenchmarkRequested is what the metrics cost a request.
func BenchmarkRequested(b *testing.B) {
	m, start := NewMetrics("test"), time.Now()
	var n time.Duration
	for b.Loop() {
		n = (n*7919 + 104729) % 1000003 // some spread
		first := start.Add(n * time.Microsecond)
		m.Requested(requestlog.Request{
			Status: 200, Sent: true, Start: start, Connected: start.Add(n), FirstByte: first, End: first.Add(n * 10),
			BodyBytes: int64(n), Late: n,
		})
	}
}
