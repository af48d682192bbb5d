//go:build !core

package frontier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestSharedGateBudget: the budget of an address is one for all frontiers: together they get no more than one of them,
// both get on, and what one learns counts for the other.
func TestSharedGateBudget(t *testing.T) {
	const latency = 50 * time.Millisecond
	limits := make([]GateLimit, limitClasses)
	limits[byAddress] = GateLimit{
		Key:     LimitKey{Network: netip.MustParsePrefix("192.0.2.1/32")},
		Options: politeness.LimitOptions{InFlight: 4, Rate: 5},
	}
	g := NewSharedGate(0, Before{})
	type flight struct {
		member int
		r      GateRequest
		end    time.Time
	}
	var members [2]*Member
	var waiting, begun [2]int
	var flights []flight
	for i := range members {
		members[i] = g.Join(func() {})
	}
	most, firstSecond := 0, 0
	for at := time.Duration(0); at < 30*time.Second; at += 5 * time.Millisecond {
		now := epoch.Add(at)
		for len(flights) > 0 && !flights[0].end.After(now) {
			f := flights[0]
			flights = flights[1:]
			f.r.Now = now
			members[f.member].End(&f.r, GateEnd{At: now, Made: true, Signal: politeness.SignalOK, Duration: latency,
				HostTerms: HostTerms{InFlight: 1}})
		}
		for i, m := range members {
			host := begun[i]
			r := GateRequest{ID: storage.HostID(host + 1), Host: fmt.Sprintf("h%d.m%d.test", host, i), Limits: limits,
				Now: now, HostTerms: HostTerms{InFlight: 1}}
			if !m.Begin(&r).OK {
				waiting[i]++
				continue
			}
			begun[i]++
			flights = append(flights, flight{i, r, now.Add(latency)})
			if at < time.Second {
				firstSecond++
			}
			most = max(most, len(flights))
		}
	}
	assert.AtMost(t, firstSecond, 5, "requests in the first second")
	assert.Equal(t, most, 4, "requests at a time in the end")
	assert.True(t, begun[0] >= 500 && begun[1] >= 500, "%v requests of the two in 30 s", begun)
}
