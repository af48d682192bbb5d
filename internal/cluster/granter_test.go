package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// grantBench is a granter whose wait is over at at(0), and a limit of all its users.
type grantBench struct {
	t      *testing.T
	g      *granter
	limit  Limit
	number uint64
	over   map[Member]bool
}

func newGrantBench(t *testing.T, limit Limit) *grantBench {
	o := testOptions()
	b := &grantBench{t: t, limit: limit, over: make(map[Member]bool)}
	b.g = newGranter(at(0), &o, func(m Member) bool { return b.over[m] })
	return b
}

// request makes a request of node a, b, c and so on, which has used its slots, and returns the grants
// that follow, by node.
func (b *grantBench) request(now time.Duration, node string, incarnation Sequence, keep, want int) map[string]Grant {
	b.number++
	return b.handle(now, GrantRequest{"key", b.limit, Member{node, incarnation}, b.number, keep, true, want})
}

func (b *grantBench) handle(now time.Duration, r GrantRequest) map[string]Grant {
	grants := make(map[string]Grant)
	for _, g := range b.g.handle(at(now), r) {
		grants[g.User.Node] = g
	}
	return grants
}

func TestGranterWaits(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 1, Delay: 10 * time.Second})
	assert.AtMost(t, len(b.request(-1, "a", 1, 0, 1)), 0, "before the wait is over")
	g := b.request(0, "a", 1, 0, 1)["a"]
	assert.True(t, g.Slots == 1 && g.After == 11*time.Second, "first grant %+v", g)
	o := testOptions()
	b.g = newGranter(-Instant(never), &o, b.g.isOver)
	if g := b.request(0, "a", 1, 0, 1)["a"]; g.Slots != 1 || g.After != 0 {
		t.Errorf("first grant of the first owner of a shard: %+v", g)
	}
}

// TestGranterConfirms: before its wait is over, a granter confirms what users have, and then counts it. Slots that
// have expired by the time at which the answer arrives are not confirmed.
func TestGranterConfirms(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	g := b.request(-5*time.Second, "a", 1, 3, 4)["a"]
	assert.True(t, g.Slots == 3 && g.Share == 4, "%+v", g)
	assert.AtMost(t, len(b.request(-4*time.Second, "b", 1, 0, 4)), 0, "before the wait is over")
	grants := b.request(0, "b", 1, 0, 4)
	assert.Equal(t, grants["b"].Slots, 1, grants)
	o := testOptions()
	a := &allowance{key: "key", waiting: 1, share: 1, slots: 1, until: at(10 * time.Second)}
	confirms := Grant{Number: a.request(at(0), &o, Member{}, 1).Number, Slots: 1, For: o.TTL}
	if a.apply(at(time.Second), &o, confirms); a.until != at(18*time.Second) {
		t.Errorf("confirmed until %v", a.until.Sub(at(0)))
	}
	a.until = at(10 * time.Second)
	if a.apply(at(10*time.Second), &o, confirms); a.slots != 0 {
		t.Error("a slot that has expired is confirmed")
	}
}

// TestGranterHandsOver: the next granter goes on with the slots, the delays and the wait of the one before,
// however long it took to see the release.
func TestGranterHandsOver(t *testing.T) {
	const delay, stretched = 10 * time.Second, 11 * time.Second
	b := newGrantBench(t, Limit{Slots: 4})
	b.request(time.Second, "a", 1, 0, 4)
	b.number++
	b.limit.Delay = delay
	b.g.handle(at(4*time.Second),
		GrantRequest{Key: "returned", Limit: b.limit, User: Member{"a", 1}, Number: 1, Want: 1})
	b.g.handle(at(5*time.Second),
		GrantRequest{Key: "returned", Limit: b.limit, User: Member{"a", 1}, Number: 2, Used: true})
	h := b.g.handover(at(6 * time.Second))
	must.True(t, len(h.Limits) == 2 && h.Ready == -6*time.Second, "%+v", h)
	b.limit.Delay = 0
	b.g = h.granter(at(time.Hour), b.g.o, b.g.isOver)
	grants := b.request(time.Hour, "b", 1, 0, 4)
	assert.True(t, grants["b"].Slots == 0 && grants["a"].Slots == 4 && grants["a"].Share == 2, "%+v", grants)
	assert.Equal(t, b.request(time.Hour+15*time.Second, "b", 1, 0, 4)["b"].Slots, 4, "a TTL after the grant")
	for _, key := range []string{"returned", "unknown"} {
		var after time.Duration
		for _, g := range b.g.handle(at(time.Hour), GrantRequest{Key: key, Limit: Limit{Slots: 1, Delay: delay},
			User: Member{"b", 1}, Number: b.number, Want: 1}) {
			after = g.After
		}
		assert.Equal(t, after,
			map[string]time.Duration{"returned": stretched - time.Second, "unknown": stretched - 6*time.Second}[key],
			key, "after")
	}
	b.g = newGranter(at(20*time.Second), b.g.o, b.g.isOver)
	b.g = b.g.handover(at(0)).granter(at(time.Minute), b.g.o, b.g.isOver)
	assert.AtMost(t, len(b.request(80*time.Second-1, "a", 1, 0, 1)), 0, "before the wait of the granter before is over")
	for i := range 1 << 14 {
		b.g.limits[strings.Repeat("x", 64)+fmt.Sprint(i)] = &sharedLimit{lastEnd: at(80 * time.Second),
			limit: Limit{1, delay}}
	}
	assert.True(t, b.g.handover(at(80*time.Second)) == nil, "more is handed over than a message holds")
}

func TestGranterDivides(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	g := b.request(0, "a", 1, 0, 1)["a"]
	assert.True(t, g.Slots == 4 && g.Share == 4, "alone: %+v", g)
	grants := b.request(time.Second, "b", 1, 0, 4)
	assert.True(t, grants["b"].Slots == 0 && grants["a"].Share == 2, "another waits: %+v", grants)
	grants = b.request(2*time.Second, "a", 1, 2, 4)
	assert.True(t, grants["a"].Slots == 2 && grants["b"].Slots == 2, "the first gives back two: %+v", grants)
	grants = b.request(3*time.Second, "c", 1, 0, 1)
	assert.True(t, grants["a"].Share == 1 || grants["b"].Share == 1, "a third waits: %+v", grants)
	// A fourth and a fifth: one of the holders of a single slot has to give it up.
	b.request(3*time.Second, "a", 1, 1, 4)
	b.request(3*time.Second, "b", 1, 1, 4)
	b.request(4*time.Second, "d", 1, 0, 1)
	grants = b.request(4*time.Second, "e", 1, 0, 1)
	if g := grants["a"]; g.Share != 0 || g.Slots != 1 {
		t.Errorf("the one that has held longest: %+v", grants)
	}
}

// TestGranterIsStrict: of users with different limits the strictest counts, as long as it is one.
func TestGranterIsStrict(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	b.request(time.Second, "a", 1, 0, 4)
	b.limit = Limit{Slots: 2, Delay: 10 * time.Second}
	b.request(2*time.Second, "b", 1, 0, 1)
	b.limit = Limit{Slots: 4}
	grants := b.request(3*time.Second, "a", 1, 1, 4)
	assert.True(t, grants["a"].Share == 0 && grants["b"].Slots == 0, "one slot is left: %+v", grants)
	g := b.request(4*time.Second, "a", 1, 0, 4)["b"]
	assert.True(t, g.Slots == 1 && g.After == 11*time.Second, "%+v", g)
	b.limit = Limit{Slots: -1, Delay: -1}
	if b.request(5*time.Second, "c", 1, 0, 1); b.g.limits["key"].limit != (Limit{Slots: 1, Delay: 10 * time.Second}) {
		t.Errorf("%+v", b.g.limits["key"].limit)
	}
}

// TestGranterCounts: a request that is late changes nothing, one that is repeated takes nothing away, and slots that
// have expired are not kept.
func TestGranterCounts(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	b.request(0, "a", 5, 0, 4)
	repeated := GrantRequest{Key: "key", Limit: b.limit, User: Member{"a", 5}, Number: 1, Want: 4}
	assert.Equal(t, b.handle(0, repeated)["a"].Slots, 4, "repeated")
	for _, r := range []GrantRequest{
		{Key: "key", User: Member{"a", 5}, Number: 0, Want: 4},
		{Key: "key", User: Member{"a", 4}, Number: 9, Want: 4},
	} {
		assert.AtMost(t, len(b.handle(time.Second, r)), 0, r)
	}
	b.request(10*time.Second, "b", 5, 0, 4)
	grants := b.request(20*time.Second, "b", 5, 0, 4)
	assert.Equal(t, grants["b"].Slots, 4, "after the slots have expired", grants)
	assert.Equal(t, b.request(21*time.Second, "a", 5, 4, 4)["a"].Slots, 0, "the first cannot keep them")
	if grants := b.request(22*time.Second, "b", 6, 4, 4); grants["a"].Slots != 2 || grants["b"].Slots != 2 {
		t.Errorf("a later membership begins with nothing: %+v", grants)
	}
	b.over[Member{"a", 5}] = true
	assert.Equal(t, b.request(23*time.Second, "b", 6, 2, 4)["b"].Slots, 4, "the membership of the other is over")
}

func TestGranterDelays(t *testing.T) {
	const delay, stretched = 10 * time.Second, 11 * time.Second
	b := newGrantBench(t, Limit{Slots: 1, Delay: delay})
	b.request(0, "a", 1, 0, 1)
	b.request(time.Minute-20*time.Second, "a", 1, 0, 1)
	b.request(time.Minute-time.Second, "b", 1, 0, 1)
	g := b.request(time.Minute, "a", 1, 0, 0)["b"]
	assert.True(t, g.Slots == 1 && g.After == stretched, "after a return: %+v", g)
	// User b is not heard of again: its slot expires at 80 s.
	b.request(81*time.Second, "c", 1, 0, 1)
	if g := b.request(82*time.Second, "c", 1, 1, 1)["c"]; g.Slots != 1 || g.After != 9*time.Second {
		t.Errorf("after an expiry: %+v", g)
	}
	if g := b.request(100*time.Second, "c", 2, 1, 1)["c"]; g.Slots != 1 || g.After != stretched {
		t.Errorf("after a later membership: %+v", g)
	}
	b.number++
	b.request(101*time.Second, "d", 1, 0, 1)
	unused := GrantRequest{Key: "key", Limit: b.limit, User: Member{"c", 2}, Number: b.number + 1}
	if g := b.handle(105*time.Second, unused)["d"]; g.Slots != 1 || g.After != 6*time.Second {
		t.Errorf("after the return of a slot that was not used: %+v", g)
	}
}

// TestGranterBounds: no message makes the granter allocate without bound, or grant more than there is.
func TestGranterBounds(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	b.g.o.Limits = 1
	assert.Equal(t, b.request(0, "a", 1, 1<<40, 1<<40)["a"].Slots, 4)
	b.request(0, "b", 1, -5, -5)
	assert.AtMost(t, len(b.handle(0, GrantRequest{Key: "another", User: Member{"a", 1}, Number: 99, Want: 1})), 0,
		"more limits than allowed")
	b.g.sweep(at(time.Hour))
	assert.Equal(t, len(b.g.limits), 0, "the limit is not forgotten")
	n := member(t, testOptions())
	for _, user := range []Member{{}, {"self", 99}, {"self", 101}, {"stranger", 100}} {
		n.GrantRequested(at(10*time.Second), GrantRequest{Key: "key", User: user, Number: 1, Want: 1})
		n.Granted(at(10*time.Second), Grant{Key: "key", User: user})
	}
	for _, shard := range []Shard{-1, 4} {
		n.EpochSeen(at(10*time.Second), shard, 900, Epoch{})
	}
	assert.AtMost(t, len(n.Actions()), 0)
}

// TestUnusedSlot: a slot that others wait for is used once before it is given back, if that is
// possible at once, or if it is held for a request that waits for something else.
func TestUnusedSlot(t *testing.T) {
	o := testOptions()
	take := func(after time.Duration) *allowance {
		a := &allowance{key: "key", waiting: 1}
		a.request(at(0), &o, Member{}, 1)
		a.apply(at(time.Second), &o, Grant{Number: 1, Slots: 1, For: o.TTL, Share: 0, After: after})
		return a
	}
	a := take(5 * time.Second)
	assert.True(t, !a.isValid(at(6*time.Second-1), &o) && a.isValid(at(6*time.Second), &o),
		"the turn begins 5 s after the arrival")
	assert.True(t, a.keep(at(6*time.Second), &o) == 1 && a.keep(at(7*time.Second), &o) == 0,
		"an unused turn is kept for a second")
	a.hold = true
	assert.True(t, a.keep(at(7*time.Second), &o) == 1, "a turn is kept for a request that waits for another")
	a = take(0)
	assert.True(t, a.keep(at(time.Second), &o) == 1, "a slot is kept until it was used")
	a.used = true
	assert.Equal(t, a.keep(at(time.Second), &o), 0, "a used slot is kept")
	assert.True(t, !a.isValid(at(17*time.Second+1), &o), "a request with less than a second of the grant left")
	a.apply(at(2*time.Second), &o, Grant{Number: 0, Slots: 2, For: o.TTL})
	assert.Equal(t, a.slots, 1, "a grant for another request counts")
}

func TestShardOf(t *testing.T) {
	for _, hosts := range [][]string{{"example.com", "www.example.com", "a.b.example.com"}, {"192.0.2.1"},
		{"[2001:db8::1]"}, {"localhost"}, {"example.co.uk", "shop.example.co.uk"}} {
		for _, host := range hosts {
			assert.Equal(t, ShardOf(host, 64), ShardOf(hosts[0], 64), host, "is in shard", hosts[0], "is not")
		}
	}
	// Golden: another function would send all hosts of an existing cluster elsewhere.
	want := map[string]Shard{"example.com": 9, "example.co.uk": 44, "192.0.2.1": 33, "[2001:db8::1]": 57}
	for host, shard := range want {
		assert.Equal(t, ShardOf(host, 64), shard, host, "is in shard not in")
	}
}

// TestRendezvous: shares follow the weights, and a node that joins takes shards only for itself.
func TestRendezvous(t *testing.T) {
	const shards = 20000
	best := func(candidates []candidate) []int {
		owners := make([]int, shards)
		for s := range owners {
			for i, c := range candidates {
				if c.beats(candidates[owners[s]], Shard(s)) {
					owners[s] = i
				}
			}
		}
		return owners
	}
	candidates := []candidate{{mix(1), 1}, {mix(2), 1}, {mix(3), 2}}
	before := best(candidates)
	for i, c := range candidates {
		share := len(slices.DeleteFunc(slices.Clone(before), func(owner int) bool { return owner != i }))
		if ideal := shards * int(c.weight) / 4; share < ideal*95/100 || share > ideal*105/100 {
			t.Errorf("a weight of %d of 4 has %d of %d shards", c.weight, share, shards)
		}
	}
	for s, owner := range best(append(candidates, candidate{mix(4), 1})) {
		must.True(t, owner == before[s] || owner == 3, "shard %d moves from %d to %d", s, before[s], owner)
	}
}

// TestShortGrant: slots are valid as long as the granter trusts itself, and are kept by another request when half of
// that time is over. After their end the next request is another one, which says that they were used.
func TestShortGrant(t *testing.T) {
	o := testOptions()
	a := &allowance{key: "key", waiting: 1}
	a.apply(at(time.Second), &o,
		Grant{Number: a.request(at(0), &o, Member{}, 1).Number, Slots: 1, For: 6 * time.Second, Share: 1})
	if a.slots != 1 || a.until != at(6*time.Second) || a.isDue(at(3*time.Second-1), &o) ||
		!a.isDue(at(3*time.Second), &o) {
		t.Errorf("%d slots until %v", a.slots, a.until.Sub(at(0)))
	}
	a.used = true
	second := a.request(at(3*time.Second), &o, Member{}, 2)
	assert.True(t, second.Number == 2 && second.Keep == 1, "%+v", second)
	a.expire(at(6 * time.Second))
	assert.True(t, a.isDue(at(6*time.Second), &o), "nothing is requested after the end")
	a.apply(at(6*time.Second), &o, Grant{Number: 2, Slots: 1, For: o.TTL, Share: 1})
	third := a.request(at(6*time.Second), &o, Member{}, 3)
	assert.True(t, a.slots == 0 && third.Number == 3 && third.Keep == 0 && third.Used, "%d slots, %+v", a.slots,
		third)
	if a.apply(at(7*time.Second), &o, Grant{Number: 3, Slots: 1, For: time.Second, Share: 1}); a.slots != 0 {
		t.Error("a grant has effect that is over when it arrives")
	}
}

// TestSlowAnswer: a request that is repeated is the same one, so an answer that takes longer than Retry is one to it.
// Half of the time later it is another.
func TestSlowAnswer(t *testing.T) {
	o := testOptions()
	a := &allowance{key: "key", waiting: 1}
	first := a.request(at(0), &o, Member{}, 1)
	assert.True(t, !a.isDue(at(o.Retry-1), &o) && a.isDue(at(o.Retry), &o), "a request is repeated after Retry")
	assert.Equal(t, a.request(at(o.Retry), &o, Member{}, 2), first, "is repeated as")
	if a.apply(at(o.Retry+time.Second), &o, Grant{Number: 1, Slots: 1, For: o.TTL, Share: 1}); a.slots != 1 ||
		a.until != at(18*time.Second) {
		t.Errorf("%d slots until %v", a.slots, a.until.Sub(at(0)))
	}
	next := a.request(at(9*time.Second), &o, Member{}, 3)
	assert.True(t, next.Number == 3 && next.Keep == 1, "the next request is %+v", next)
}
