//go:build !core

package frontier

import (
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// testGrants are grants that a test gives.
type testGrants struct {
	free map[LimitKey]int
	need map[LimitKey]GrantNeed
}

func (g *testGrants) Turn(k LimitKey) GrantTurn { return GrantTurn{Free: g.free[k]} }

func (g *testGrants) Begin(k LimitKey) bool {
	if g.free[k] == 0 {
		return false
	}
	g.free[k]--
	return true
}

func (g *testGrants) End(k LimitKey) { g.free[k]++ }

func (g *testGrants) Need(n GrantNeed) { g.need[n.Key] = n }

// TestGrants: a request begins when the process has a grant of its group and of its address. It needs that of
// the address when it has that of the group, which it holds meanwhile. That of a domain needs none.
func TestGrants(t *testing.T) {
	group, domain := LimitKey{Group: "a group"}, LimitKey{Domain: "example.com"}
	address := LimitKey{Network: netip.MustParsePrefix("192.0.2.1/32")}
	grants := &testGrants{free: map[LimitKey]int{}, need: map[LimitKey]GrantNeed{}}
	sharedGate := NewSharedGate(0, Before{})
	sharedGate.Share(grants)
	member := sharedGate.Join(func() {})
	now := epoch
	one := politeness.LimitOptions{InFlight: 1}
	request := func(id storage.HostID, host string) *GateRequest {
		r := &GateRequest{ID: id, Host: host, Now: now, HostTerms: HostTerms{InFlight: 1}}
		r.Limits = []GateLimit{byDomain: {domain, politeness.LimitOptions{}}, byGroup: {group, one},
			byAddress: {address, one}}
		return r
	}
	state := func(what string, admitted bool, inGroup, atAddress int, hold bool) {
		t.Helper()
		assert.Equal(t, member.Begin(request(1, "a.example.com")).OK, admitted, what, "admitted")
		g, a := grants.need[group], grants.need[address]
		assert.True(t, g.Waiting == inGroup && a.Waiting == atAddress && g.Hold == hold && !a.Hold,
			"%s: needs %+v of the group and %+v of the address", what, g, a)
	}
	state("no grant", false, 1, 0, false)
	grants.free[address] = 1
	state("a grant of the address alone", false, 1, 0, false)
	grants.free[address], grants.free[group] = 0, 1
	state("a grant of the group", false, 1, 1, true)
	grants.free[address] = 1
	if sharedGate.Granted(address, now); len(member.Woken()) != 1 {
		t.Error("the request is not woken")
	}
	state("both grants", true, 0, 0, false)
	assert.Equal(t, grants.free[group]+grants.free[address], 0, grants.free, "is free")
	_, needs := grants.need[domain]
	assert.True(t, !needs, "the limit of a domain needs a grant")
	assert.True(t, !member.Begin(request(2, "b.example.com")).OK && grants.need[group].Waiting == 1,
		"a second request begins, or does not wait: %+v", grants.need)
	now = now.Add(time.Second)
	member.End(request(1, "a.example.com"), GateEnd{At: now, Made: true, HostTerms: HostTerms{InFlight: 1}})
	assert.Equal(t, grants.free[group]+grants.free[address], 2, grants.free, "is free")
	now = now.Add(time.Minute) // the second does not come
	sharedGate.Granted(group, now)
	assert.True(t, grants.need[group].Waiting == 0, "a request that does not come needs %+v", grants.need[group])
}

// TestGrantsOvertaken: a request that begins at once, on a limit that another one waits with for a grant, changes what
// that one needs.
func TestGrantsOvertaken(t *testing.T) {
	now := epoch
	sharedGate := NewSharedGate(time.Second, Before{})
	grants := &testGrants{free: map[LimitKey]int{}, need: map[LimitKey]GrantNeed{}}
	sharedGate.Share(grants)
	member := sharedGate.Join(func() {})
	one := politeness.LimitOptions{InFlight: 1}
	domain, group := LimitKey{Domain: "example.com"}, LimitKey{Group: "g"}
	request := func(id storage.HostID, host string, limits ...GateLimit) *GateRequest {
		r := &GateRequest{ID: id, Host: host, Now: now, HostTerms: HostTerms{InFlight: 1}, Limits: make([]GateLimit, 3)}
		for _, l := range limits {
			if l.Key == group {
				r.Limits[byGroup] = l
			} else {
				r.Limits[byDomain] = l
			}
		}
		return r
	}
	must.True(t, !member.Begin(request(1, "a.example.com", GateLimit{domain, one}, GateLimit{group, one})).OK &&
		grants.need[group].Waiting == 1, "%+v", grants.need)
	second := request(2, "b.example.com", GateLimit{domain, one})
	second.Batch = Batch{Most: 2, More: true} // its turn has come before
	must.True(t, member.Begin(second).OK, "the second request does not begin")
	assert.Equal(t, grants.need[group].Waiting, 0, "a request that waits for its domain needs")
}
