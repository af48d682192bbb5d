package cluster

import (
	"slices"
	"testing"
	"time"
)

// grantBench is a granter whose wait is over at at(0), with a limit of 4 slots, or a delay.
type grantBench struct {
	t      *testing.T
	g      granter
	number uint64
}

func newGrantBench(t *testing.T, limit Limit) *grantBench {
	o := testOptions()
	o.Limit = func(string) Limit { return limit }
	return &grantBench{t: t, g: granter{o: &o, ready: at(0), limits: make(map[string]*sharedLimit)}}
}

// request makes a request and returns the grants that follow, by user.
func (b *grantBench) request(now time.Duration, user Shard, epoch Sequence, keep, want int) map[Shard]Grant {
	b.number++
	grants := make(map[Shard]Grant)
	for _, action := range b.g.handle(at(now), GrantRequest{"key", user, epoch, b.number, keep, want}, nil) {
		g := action.(SendGrant).Grant
		grants[g.User] = g
	}
	return grants
}

func TestGranterWaits(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 1, Delay: 10 * time.Second})
	if grants := b.request(-1, 1, 1, 0, 1); len(grants) > 0 {
		t.Errorf("%v before the wait is over", grants)
	}
	if g := b.request(0, 1, 1, 0, 1)[1]; g.Slots != 1 || g.After != 11*time.Second {
		t.Errorf("first grant %+v", g)
	}
}

func TestGranterDivides(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	if g := b.request(0, 1, 1, 0, 1)[1]; g.Slots != 4 || g.Share != 4 {
		t.Errorf("alone: %+v", g)
	}
	grants := b.request(time.Second, 2, 1, 0, 4)
	if grants[2].Slots != 0 || grants[1].Share != 2 {
		t.Errorf("another waits: %+v", grants)
	}
	grants = b.request(2*time.Second, 1, 1, 2, 4)
	if grants[1].Slots != 2 || grants[2].Slots != 2 {
		t.Errorf("the first gives back two: %+v", grants)
	}
	grants = b.request(3*time.Second, 3, 1, 0, 1)
	if grants[1].Share != 1 && grants[2].Share != 1 {
		t.Errorf("a third waits: %+v", grants)
	}
	// A fourth and a fifth: one of the holders of a single slot has to give it up.
	b.request(3*time.Second, 1, 1, 1, 4)
	b.request(3*time.Second, 2, 1, 1, 4)
	b.request(4*time.Second, 4, 1, 0, 1)
	grants = b.request(4*time.Second, 5, 1, 0, 1)
	if g := grants[1]; g.Share != 0 || g.Slots != 1 {
		t.Errorf("the one that has held longest: %+v", grants)
	}
}

// TestGranterCounts: a request that is repeated or late changes nothing, and slots that have expired
// are not kept.
func TestGranterCounts(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	b.request(0, 1, 5, 0, 4)
	for _, r := range []GrantRequest{
		{"key", 1, 5, 1, 0, 4}, // repeated
		{"key", 1, 4, 9, 0, 4}, // of an earlier epoch
	} {
		if grants := b.g.handle(at(time.Second), r, nil); len(grants) > 0 {
			t.Errorf("%+v: %v", r, grants)
		}
	}
	b.request(10*time.Second, 2, 5, 0, 4)
	grants := b.request(20*time.Second, 2, 5, 0, 4)
	if grants[2].Slots != 4 {
		t.Errorf("after the slots have expired: %+v", grants)
	}
	if g := b.request(21*time.Second, 1, 5, 4, 4)[1]; g.Slots != 0 {
		t.Errorf("the first cannot keep them: %+v", g)
	}
	if grants := b.request(22*time.Second, 2, 6, 4, 4); grants[1].Slots != 2 || grants[2].Slots != 2 {
		t.Errorf("a later epoch begins with nothing: %+v", grants)
	}
}

func TestGranterDelays(t *testing.T) {
	const delay, stretched = 10 * time.Second, 11 * time.Second
	b := newGrantBench(t, Limit{Slots: 1, Delay: delay})
	b.request(0, 1, 1, 0, 1)
	b.request(time.Minute-20*time.Second, 1, 1, 0, 1)
	b.request(time.Minute-time.Second, 2, 1, 0, 1)
	if g := b.request(time.Minute, 1, 1, 0, 0)[2]; g.Slots != 1 || g.After != stretched {
		t.Errorf("after a return: %+v", g)
	}
	// User 2 is not heard of again: its slot expires at 80 s.
	b.request(81*time.Second, 3, 1, 0, 1)
	if g := b.request(82*time.Second, 3, 1, 1, 1)[3]; g.Slots != 1 || g.After != 9*time.Second {
		t.Errorf("after an expiry: %+v", g)
	}
	if g := b.request(100*time.Second, 3, 2, 1, 1)[3]; g.Slots != 1 || g.After != stretched {
		t.Errorf("after a later epoch: %+v", g)
	}
}

// TestGranterBounds: no message makes the granter allocate without bound, or grant more than there is.
func TestGranterBounds(t *testing.T) {
	b := newGrantBench(t, Limit{Slots: 4})
	b.g.o.Limits = 1
	if g := b.request(0, 1, 1, 1<<40, 1<<40)[1]; g.Slots != 4 {
		t.Errorf("%+v", g)
	}
	b.request(0, 2, 1, -5, -5)
	if out := b.g.handle(at(0), GrantRequest{"another", 1, 1, 99, 0, 1}, nil); len(out) > 0 {
		t.Errorf("more limits than allowed: %v", out)
	}
	b.g.sweep(at(time.Hour))
	if len(b.g.limits) != 0 {
		t.Error("the limit is not forgotten")
	}
	n := member(t, testOptions())
	for _, user := range []Shard{-1, 4} {
		n.GrantRequested(at(30*time.Second), GrantRequest{Key: "key", User: user, Number: 1, Want: 1})
		n.Granted(at(30*time.Second), Grant{Key: "key", User: user})
		n.EpochSeen(at(30*time.Second), user, 900, Epoch{})
	}
	if actions := n.Actions(); len(actions) > 0 {
		t.Errorf("%v", actions)
	}
}

// TestUnusedSlot: a slot that others wait for is used once before it is given back, if that is
// possible at once.
func TestUnusedSlot(t *testing.T) {
	o := testOptions()
	o.Limit = nil
	h := &holding{shard: 1, opened: 1}
	take := func(after time.Duration) *allowance {
		a := &allowance{key: "key", want: 1}
		a.request(at(0), &o, h, 1)
		a.apply(at(time.Second), &o, Grant{Number: 1, Slots: 1, Share: 0, After: after})
		return a
	}
	a := take(5 * time.Second)
	if a.mayStart(at(6*time.Second-1), &o) || !a.mayStart(at(6*time.Second), &o) {
		t.Error("the turn begins 5 s after the arrival")
	}
	if a.keep(at(6*time.Second), &o) != 1 || a.keep(at(7*time.Second), &o) != 0 {
		t.Error("an unused turn is kept for a second")
	}
	if a = take(0); a.keep(at(time.Second), &o) != 1 {
		t.Error("a slot is kept until it was used")
	}
	a.used = true
	if a.keep(at(time.Second), &o) != 0 {
		t.Error("a used slot is kept")
	}
	if a.mayStart(at(17*time.Second+1), &o) {
		t.Error("a request with less than a second of the grant left")
	}
	a.apply(at(2*time.Second), &o, Grant{Number: 0, Slots: 2})
	if a.slots != 1 {
		t.Error("a grant for another request counts")
	}
}

func TestShardOf(t *testing.T) {
	for _, hosts := range [][]string{{"example.com", "www.example.com", "a.b.example.com"}, {"192.0.2.1"},
		{"[2001:db8::1]"}, {"localhost"}, {"example.co.uk", "shop.example.co.uk"}} {
		for _, host := range hosts {
			if got := ShardOf(host, 64); got != ShardOf(hosts[0], 64) {
				t.Errorf("%s is in shard %d, %s is not", host, got, hosts[0])
			}
		}
	}
	// Golden: another function would send all hosts of an existing cluster elsewhere.
	want := map[string]Shard{"example.com": 9, "example.co.uk": 44, "192.0.2.1": 33, "[2001:db8::1]": 57}
	for host, shard := range want {
		if got := ShardOf(host, 64); got != shard {
			t.Errorf("%s is in shard %d, not in %d", host, got, shard)
		}
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
		if owner != before[s] && owner != 3 {
			t.Fatalf("shard %d moves from %d to %d", s, before[s], owner)
		}
	}
}
