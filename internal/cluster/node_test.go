package cluster

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// at is an instant some time after the start of a test.
func at(d time.Duration) Instant { return Instant(time.Hour).Add(d) }

// find returns the last action of a type, and whether there is one.
func find[A Action](actions []Action) (found A, ok bool) {
	for _, action := range actions {
		if a, is := action.(A); is {
			found, ok = a, true
		}
	}
	return found, ok
}

// testOptions are those of node "self" of a cluster of 4 shards.
func testOptions() Options {
	o := DefaultOptions()
	o.Node, o.Process, o.Shards = "self", 7, 4
	return o
}

// member returns a node whose membership has begun at at(0) with sequence 100, and which owns all
// four shards with epochs 200 to 203.
func member(t *testing.T, o Options) *Node {
	t.Helper()
	n := must.Get(NewNode(at(0), o))(t)
	n.Tick(at(0))
	w, _ := find[WriteKey](n.Actions())
	n.KeyAnswer(at(0), "self", w.ID, 100, true)
	n.Tick(at(3 * time.Second))
	for _, action := range slices.Clone(n.Actions()) {
		if w, ok := action.(WriteEpoch); ok {
			n.EpochAnswer(at(3*time.Second), w.Shard, w.ID, 200+Sequence(w.Shard), true)
		}
	}
	opened := 0
	for _, action := range n.Actions() {
		if _, ok := action.(OpenEngine); ok {
			opened++
		}
	}
	must.True(t, opened == o.Shards, "%d engines", opened)
	return n
}

func TestTrustCountsFromTheHeartbeat(t *testing.T) {
	n := member(t, testOptions())
	n.Tick(at(5 * time.Second))
	w, ok := find[WriteKey](n.Actions())
	must.True(t, ok && w.Expected == 100, "heartbeat %+v", w)
	n.KeyAnswer(at(9*time.Second), "self", w.ID, 101, true)
	if n.Trust() != at(23*time.Second) {
		t.Errorf("trusted until %v after the start", n.Trust().Sub(at(0)))
	}
	assert.True(t, n.MayStart(at(22*time.Second), 0) && !n.MayStart(at(22*time.Second+1), 0),
		"a request may start with a second of trust left, and not with less")
}

// TestQuarantine: an engine that cannot run costs its own shard. The node keeps it, grants its limits and claims it
// again after a pause, which grows with each failure and ends when somebody says so. The other shards go on.
func TestQuarantine(t *testing.T) {
	o := testOptions()
	o.TTL, o.Margin = time.Hour, time.Hour/10 // one heartbeat is enough
	n := member(t, o)
	n.self.until = at(time.Hour)
	key := keyOf(t, 1, o.Shards)
	now, seq := at(10*time.Second), Sequence(300)
	fail := func() Epoch {
		t.Helper()
		n.EngineFailed(now, 1, Fault{Kind: "log", Sequence: 42, Reason: "it cannot be read"})
		w, ok := find[WriteEpoch](n.Actions())
		must.True(t, ok && w.Epoch.Fault != nil && !w.Epoch.Released, "the failure is not written: %+v", w)
		seq++
		n.EpochAnswer(now, 1, w.ID, seq, true)
		return w.Epoch
	}
	claimed := func() bool { // the engine is opened with another epoch
		t.Helper()
		n.Tick(now)
		w, ok := find[WriteEpoch](n.Actions())
		if !ok {
			return false
		}
		seq++
		n.EpochAnswer(now, 1, w.ID, seq, true)
		opened, ok := find[OpenEngine](n.Actions())
		return ok && w.Epoch.Fault == nil && opened.Shard == 1 && opened.Epoch == seq
	}
	for times, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		e := fail()
		assert.True(t, e.Fault.Times == times+1 && e.Fault.Sequence == 42, "failure %d: %+v", times+1, e.Fault)
		assert.True(t, !n.MayStart(now, 1) && n.MayStart(now, 0) && n.IsGranter(now, key),
			"the shard is crawled, another is not, or its limits are not granted")
		s := n.Status().Shards[1]
		assert.True(t, s.Owner == "self" && s.Fault != nil && s.Fault.Reason == "it cannot be read", "status %+v", s)
		now = now.Add(pause - 1)
		must.True(t, !claimed(), "claimed within %v", pause)
		now = now.Add(1)
		must.True(t, claimed(), "not claimed after %v", pause)
	}
	now = now.Add(5 * time.Minute)
	assert.True(t, fail().Fault.Times == 1, "an old failure counts")
	if n.RetryFaults(now); !claimed() {
		t.Error("not claimed when somebody has said so")
	}
	fail()
	n.Drain(now, false)
	released := false
	for _, a := range n.Actions() {
		w, ok := a.(WriteEpoch)
		released = released || ok && w.Shard == 1 && w.Epoch.Released && w.Epoch.Fault == nil
	}
	assert.True(t, released && !n.IsGranter(now, key),
		"a node that is drained does not hand over a shard in quarantine, or grants its limits")
}

// keyOf returns a limit that hashes to a shard.
func keyOf(t *testing.T, s Shard, shards int) string {
	t.Helper()
	for i := range 1000 {
		if key := strings.Repeat("x", i+1); GranterOf(key, shards) == s {
			return key
		}
	}
	t.Fatal("no key")
	return ""
}

func TestRefusedHeartbeatEndsTrust(t *testing.T) {
	n := member(t, testOptions())
	n.Tick(at(5 * time.Second))
	w, _ := find[WriteKey](n.Actions())
	n.KeyAnswer(at(6*time.Second), "self", w.ID, 0, false)
	_, reads := find[ReadKey](n.Actions())
	assert.True(t, !n.MayStart(at(6*time.Second), 0) && reads, "trusted after a refusal, or the register is not read")
}

// TestRefusedAfterLostAnswer: a heartbeat without an answer may have been written, and explains why
// the next one is refused.
func TestRefusedAfterLostAnswer(t *testing.T) {
	n := member(t, testOptions())
	n.Tick(at(5 * time.Second))
	n.Tick(at(7 * time.Second))
	w, _ := find[WriteKey](n.Actions())
	n.KeyAnswer(at(7*time.Second), "self", w.ID, 0, false)
	assert.True(t, n.MayStart(at(8*time.Second), 0), "not trusted")
	n.KeySeen(at(8*time.Second), "self", 101, Key{Process: 7, Incarnation: 100, Weight: 1})
	n.Tick(at(9 * time.Second))
	if w, ok := find[WriteKey](n.Actions()); !ok || w.Expected != 101 {
		t.Errorf("heartbeat %+v", w)
	}
}

func TestLostMembershipBreaksEnginesOff(t *testing.T) {
	n := member(t, testOptions())
	n.KeySeen(at(5*time.Second), "self", 300, Key{Incarnation: 100, Sealed: true})
	actions := slices.Clone(n.Actions())
	stop, ok := find[StopEngine](actions)
	assert.True(t, ok && !stop.Orderly && !n.MayStart(at(5*time.Second), 0), "actions %v", actions)
	n.Tick(at(5 * time.Second))
	if w, ok := find[WriteKey](n.Actions()); !ok || w.Expected != 300 || w.Key.Incarnation != 0 {
		t.Errorf("new membership %+v", w)
	}
}

// other makes a node see a member "other" that owns shard 1, and lets nothing more be heard of it.
func other(t *testing.T, n *Node) {
	t.Helper()
	n.KeySeen(at(4*time.Second), "other", 400, Key{Process: 8, Weight: 1})
	n.EpochSeen(at(4*time.Second), 1, 401, Epoch{Owner: Member{"other", 400}})
	n.EngineStopped(at(4*time.Second), 1)
}

// beatAll writes the heartbeats of a node until an instant, and returns the other actions since.
func beatAll(n *Node, from, until time.Duration) (others []Action) {
	seq := Sequence(1000)
	for d := from; d <= until; d += 250 * time.Millisecond {
		n.Tick(at(d))
		for _, action := range slices.Clone(n.Actions()) {
			if w, ok := action.(WriteKey); ok && w.Node == "self" {
				seq++
				n.KeyAnswer(at(d), "self", w.ID, seq, true)
				continue
			}
			others = append(others, action)
		}
	}
	return others
}

func TestSealAfterATTLOfSilence(t *testing.T) {
	n := member(t, testOptions())
	other(t, n)
	actions := beatAll(n, 4*time.Second, 24*time.Second-time.Millisecond)
	if w, ok := find[WriteKey](actions); ok {
		t.Fatalf("too early: %+v", w)
	}
	if w, ok := find[WriteEpoch](actions); ok && w.Shard == 1 {
		t.Fatalf("claim of an owned shard: %+v", w)
	}
	n.Tick(at(24 * time.Second))
	seal, ok := find[WriteKey](n.Actions())
	must.True(t, ok && seal.Node == "other" && seal.Expected == 400 && seal.Key.Sealed, "seal %+v", seal)
	n.KeyAnswer(at(24*time.Second), "other", seal.ID, 500, true)
	n.Tick(at(25 * time.Second))
	claim, ok := find[WriteEpoch](n.Actions())
	assert.True(t, ok && claim.Shard == 1 && claim.Expected == 401 &&
		claim.Epoch == (Epoch{Owner: Member{"self", 100}}), "claim %+v", claim)
}

// TestUnreadableRegister: a register that cannot be read costs its node only. Others seal it after a TTL of silence,
// and the node itself, which may have been sealed, begins a new membership after that time.
func TestUnreadableRegister(t *testing.T) {
	n := member(t, testOptions())
	other(t, n)
	n.KeyUnreadable(at(10*time.Second), "other", 450)
	actions := beatAll(n, 10*time.Second, 30*time.Second-time.Millisecond)
	if w, ok := find[WriteKey](actions); ok {
		t.Fatalf("too early: %+v", w)
	}
	n.Tick(at(30 * time.Second))
	seal, ok := find[WriteKey](n.Actions())
	must.True(t, ok && seal.Node == "other" && seal.Expected == 450 && seal.Key.Sealed && seal.Key.Incarnation == 400,
		"seal %+v", seal)
	n.KeyAnswer(at(30*time.Second), "other", seal.ID, 500, true)
	n.Tick(at(31 * time.Second))
	if claim, ok := find[WriteEpoch](n.Actions()); !ok || claim.Shard != 1 || claim.Expected != 401 {
		t.Errorf("claim %+v", claim)
	}
	for range 2 { // a read repeats it
		n.KeyUnreadable(at(31*time.Second), "self", 2000)
	}
	if stop, ok := find[StopEngine](n.Actions()); !ok || stop.Orderly || n.MayStart(at(31*time.Second), 0) {
		t.Errorf("stop %+v", stop)
	}
	n.Tick(at(51*time.Second - time.Millisecond))
	if w, ok := find[WriteKey](n.Actions()); ok {
		t.Errorf("a new membership too early: %+v", w)
	}
	for range 2 {
		n.Tick(at(51 * time.Second))
	}
	if w, ok := find[WriteKey](n.Actions()); !ok || w.Expected != 2000 || w.Key.Incarnation != 0 {
		t.Errorf("new membership %+v", w)
	}
}

// TestRefusedSeal: the member is not silent, it has only not been heard.
func TestRefusedSeal(t *testing.T) {
	n := member(t, testOptions())
	other(t, n)
	actions := beatAll(n, 4*time.Second, 24*time.Second)
	seal, _ := find[WriteKey](actions)
	n.KeyAnswer(at(24*time.Second), "other", seal.ID, 0, false)
	read, ok := find[ReadKey](n.Actions())
	assert.True(t, ok && read.Node == "other", "the register is not read")
	n.KeySeen(at(24*time.Second), "other", 410, Key{Process: 8, Incarnation: 400, Weight: 1})
	if claim, ok := find[WriteEpoch](beatAll(n, 24*time.Second, 43*time.Second)); ok && claim.Shard == 1 {
		t.Errorf("claim %+v", claim)
	}
}

// TestImpossibleOwner: an epoch of a membership that cannot have begun yet does not hold its shard for
// ever, and neither does a key.
func TestImpossibleOwner(t *testing.T) {
	n := member(t, testOptions())
	n.KeySeen(at(4*time.Second), "other", 400, Key{Process: 8, Incarnation: math.MaxUint64, Weight: 1})
	n.EpochSeen(at(4*time.Second), 1, 401, Epoch{Owner: Member{"other", math.MaxUint64}})
	n.EngineStopped(at(4*time.Second), 1)
	seal, _ := find[WriteKey](beatAll(n, 4*time.Second, 24*time.Second))
	n.KeyAnswer(at(24*time.Second), "other", seal.ID, 500, true)
	n.Tick(at(25 * time.Second))
	claim, ok := find[WriteEpoch](n.Actions())
	assert.True(t, ok && claim.Shard == 1, "claim %+v", claim)
}

// TestOutage: a node that could not hear the others does not hold their silence against them.
func TestOutage(t *testing.T) {
	n := member(t, testOptions())
	other(t, n)
	for d := 5 * time.Second; d < 60*time.Second; d += time.Second {
		n.Tick(at(d))
	}
	n.Actions()
	w, ok := find[WriteKey](beatAll(n, time.Minute, 79*time.Second))
	assert.True(t, !ok, "seal %+v", w)
}

func TestRefusedClaimIsReadBack(t *testing.T) {
	n := member(t, testOptions())
	n.EpochSeen(at(4*time.Second), 1, 401, Epoch{Owner: Member{"other", 400}, Released: true})
	n.EngineStopped(at(4*time.Second), 1)
	claim, _ := find[WriteEpoch](n.Actions())
	n.EpochAnswer(at(4*time.Second), 1, claim.ID, 0, false)
	read, ok := find[ReadEpoch](n.Actions())
	assert.True(t, ok && read.Shard == 1, "the register is not read")
}

// TestLogRefused: the engine ends, and the shard gets another epoch.
func TestLogRefused(t *testing.T) {
	n := member(t, testOptions())
	n.LogRefused(at(4*time.Second), 2, 202)
	stop, ok := find[StopEngine](n.Actions())
	assert.True(t, ok && stop == (StopEngine{Shard: 2}) && !n.MayStart(at(4*time.Second), 2), "stop %+v", stop)
	n.EngineStopped(at(5*time.Second), 2)
	if claim, ok := find[WriteEpoch](n.Actions()); !ok || claim.Expected != 202 || claim.Epoch.Released {
		t.Errorf("claim %+v", claim)
	}
}

func TestLeave(t *testing.T) {
	n := member(t, testOptions())
	n.Drain(at(4*time.Second), true)
	n.Tick(at(4*time.Second + passEvery))
	for _, action := range slices.Clone(n.Actions()) {
		if stop, ok := action.(StopEngine); ok {
			assert.True(t, stop.Orderly, "%+v", stop)
			n.EngineStopped(at(5*time.Second), stop.Shard)
		}
	}
	for _, action := range slices.Clone(n.Actions()) {
		if w, ok := action.(WriteEpoch); ok {
			n.EpochAnswer(at(5*time.Second), w.Shard, w.ID, 600+Sequence(w.Shard), w.Epoch.Released)
		}
	}
	n.Tick(at(5 * time.Second))
	seal, ok := find[WriteKey](n.Actions())
	must.True(t, ok && seal.Key.Sealed, "seal %+v", seal)
	n.KeyAnswer(at(5*time.Second), "self", seal.ID, 700, true)
	n.Tick(at(6 * time.Second))
	if _, ok := find[Left](n.Actions()); !ok {
		t.Error("the node has not left")
	}
	n.Tick(at(30 * time.Second))
	if w, ok := find[WriteKey](n.Actions()); ok {
		t.Errorf("a new membership: %+v", w)
	}
}

func TestNameTaken(t *testing.T) {
	n, _ := NewNode(at(0), testOptions())
	n.KeySeen(at(0), "self", 50, Key{Process: 1, Weight: 1})
	n.Tick(at(0))
	actions := n.Actions()
	must.True(t, len(actions) <= 0, "%v before it is known whether the other process lives", actions)
	n.KeySeen(at(5*time.Second), "self", 51, Key{Process: 1, Incarnation: 50, Weight: 1})
	n.Tick(at(5 * time.Second))
	_, ok := find[NameTaken](n.Actions())
	assert.True(t, ok, "the other process lives")
}

// TestPredecessor: a process that knows that the one before it has ended takes its shards at once.
func TestPredecessor(t *testing.T) {
	o := testOptions()
	o.Predecessor = 50
	n, _ := NewNode(at(0), o)
	n.KeySeen(at(0), "self", 51, Key{Process: 1, Incarnation: 50, Weight: 1})
	n.EpochSeen(at(0), 3, 52, Epoch{Owner: Member{"self", 50}})
	n.Tick(at(0))
	w, ok := find[WriteKey](n.Actions())
	must.True(t, ok && w.Expected == 51, "membership %+v", w)
	n.KeyAnswer(at(0), "self", w.ID, 53, true)
	n.Tick(at(passEvery))
	if claim, ok := find[WriteEpoch](n.Actions()); !ok || claim.Shard != 3 || claim.Expected != 52 {
		t.Errorf("claim %+v", claim)
	}
}

// TestGrant: a node whose own shard grants a limit has slots of it until a TTL less the margin after its
// request, and one request is one slot.
func TestGrant(t *testing.T) {
	n := member(t, testOptions())
	beatAll(n, 4*time.Second, 30*time.Second)
	n.Need(at(31*time.Second), "key", Need{Limit{Slots: 1}, 1, false})
	r, ok := find[SendGrantRequest](n.Actions())
	must.True(t, ok && r.Request.User == (Member{"self", 100}), "request %+v", r)
	assert.True(t, !n.Start(at(31*time.Second), "key"), "a request without a grant")
	n.Granted(at(33*time.Second),
		Grant{Key: "key", User: n.Member(), Number: r.Request.Number, Slots: 1, For: time.Minute,
			Share: 1})
	assert.Equal(t, n.allowances[0].until, at(49*time.Second), "granted until")
	assert.True(t, n.Start(at(34*time.Second), "key") && !n.Start(at(34*time.Second), "key"), "one slot is one request")
	end := n.Trust()
	if end >= at(49*time.Second) {
		t.Fatalf("trusted until %v", end.Sub(at(0)))
	}
	assert.True(t, n.Until("key") == end && n.MayContinue(at(35*time.Second), "key") &&
		!n.MayContinue(at(49*time.Second), "key"), "a request goes on as long as there is a grant")
	n.End(at(35*time.Second), "key")
	assert.True(t, n.Turn(at(35*time.Second), "key").Free == 1 && n.Turn(at(48*time.Second+1), "key").Free == 0,
		"no request starts with less than a second of the grant left")
}

// TestSlotsGoBack: what a node gives back, or does not wait for any more, is said again until the granter has heard
// it: it gives the slot to nobody else for a TTL.
func TestSlotsGoBack(t *testing.T) {
	o := testOptions()
	for name, granted := range map[string]bool{"used": true, "granted too late": false} {
		t.Run(name, func(t *testing.T) {
			n := member(t, o)
			beatAll(n, 4*time.Second, 30*time.Second)
			requested := func(after time.Duration) *GrantRequest {
				n.Tick(at(after))
				if r, ok := find[SendGrantRequest](n.Actions()); ok {
					return &r.Request
				}
				return nil
			}
			grant := func(r *GrantRequest, after time.Duration, slots int) {
				n.Granted(at(after), Grant{Key: "key", User: n.Member(), Number: r.Number, Slots: slots, For: o.TTL})
			}
			n.Need(at(30*time.Second), "key", Need{Limit{Slots: 1}, 1, false})
			first, _ := find[SendGrantRequest](n.Actions())
			if granted {
				grant(&first.Request, 30*time.Second, 1)
				must.True(t, n.Start(at(30*time.Second), "key"), "no start")
			}
			n.Need(at(30*time.Second), "key", Need{Limit: Limit{Slots: 1}})
			n.End(at(30*time.Second), "key")
			n.Actions()
			assert.True(t, requested(30*time.Second+o.Retry-1) == nil, "said again before Retry")
			r := requested(30*time.Second + o.Retry)
			must.True(t, r != nil && r.Keep == 0 && r.Want == 0, "the slot does not go back: %+v", r)
			assert.True(t, requested(30*time.Second+2*o.Retry) != nil, "not said again")
			if !granted { // the grant arrives at last
				grant(r, 35*time.Second, 1)
				if r = requested(35 * time.Second); r == nil || r.Number == first.Request.Number || r.Keep != 0 {
					t.Fatalf("the slot that came too late does not go back: %+v", r)
				}
			}
			grant(r, 36*time.Second, 0)
			if r := requested(36*time.Second + o.Retry); r != nil || len(n.allowances) != 0 {
				t.Errorf("said again after the answer: %+v", r)
			}
		})
	}
	n := member(t, o)
	n.Need(at(4*time.Second), "key", Need{Limit{Slots: 1}, 1, false})
	n.Need(at(4*time.Second), "key", Need{Limit: Limit{Slots: 1}})
	if n.Tick(at(4*time.Second + o.TTL)); len(n.allowances) != 0 {
		t.Error("an allowance without a use stays for longer than a TTL")
	}
}

// TestExpiredRequest: a request that has outlived its grant does not go on under a later one that has no
// room for it, or whose turn has not come.
func TestExpiredRequest(t *testing.T) {
	n := member(t, testOptions())
	beatAll(n, 4*time.Second, 30*time.Second)
	a := &allowance{key: "key", limit: Limit{Slots: 4}, slots: 2, until: at(10 * time.Second), share: 4, waiting: 1}
	n.allowances = append(n.allowances, a)
	for range 2 {
		must.True(t, n.Start(at(5*time.Second), "key"), "no start")
	}
	n.Tick(at(30 * time.Second))
	r, _ := find[SendGrantRequest](n.Actions())
	must.True(t, r.Request.Keep == 0 && r.Request.Want == 3, "request %+v", r)
	g := Grant{Key: "key", User: n.Member(), Number: r.Request.Number, Slots: 1, For: time.Minute, Share: 1,
		After: time.Second}
	n.Granted(at(31*time.Second), g)
	assert.True(t, !n.MayContinue(at(33*time.Second), "key"), "two requests go on with one slot")
	n.End(at(31*time.Second), "key")
	assert.True(t, !n.MayContinue(at(32*time.Second-1), "key") && n.MayContinue(at(32*time.Second), "key"),
		"the turn of the request comes after 1 s")
	assert.True(t, a.used, "a request that goes on does not count as a use")
}

// TestGranterNeedsTrust: a granter that may have a successor grants nothing.
func TestGranterNeedsTrust(t *testing.T) {
	n := member(t, testOptions())
	beatAll(n, 4*time.Second, 30*time.Second)
	r := GrantRequest{Key: "key", Limit: Limit{Slots: 2}, User: n.Member(), Number: 1, Want: 1}
	n.GrantRequested(n.Trust(), r)
	g, ok := find[SendGrant](n.Actions())
	assert.True(t, !ok, "%+v without trust", g)
	n.GrantRequested(n.Trust()-1, r)
	if g, ok := find[SendGrant](n.Actions()); !ok || g.Grant.Slots != 2 || g.Grant.For != 1 {
		t.Errorf("%+v with trust", g)
	}
}

// TestNewGranter: a granter waits until all grants that it does not know of have ended. Those of an owner that was
// silent for a TTL have, and only those of owners before it may go on.
func TestNewGranter(t *testing.T) {
	for name, tt := range map[string]struct {
		claimed time.Duration // the epoch of the one before is seen then
		end     Key
		waits   time.Duration // from 25 s
	}{
		"sealed after a TTL": {4 * time.Second, Key{Incarnation: 400, Sealed: true, Silent: true}, 0},
		"has claimed it lately": {14 * time.Second, Key{Incarnation: 400, Sealed: true, Silent: true},
			9 * time.Second},
		"sealed by itself":              {4 * time.Second, Key{Incarnation: 400, Sealed: true}, 20 * time.Second},
		"another process has begun":     {4 * time.Second, Key{}, 20 * time.Second},
		"sealed after a TTL, and begun": {4 * time.Second, Key{Incarnation: 400, Sealed: true, Silent: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := member(t, testOptions())
			n.KeySeen(at(4*time.Second), "other", 400, Key{Weight: 1})
			beatAll(n, 4*time.Second, tt.claimed)
			n.EpochSeen(at(tt.claimed), 1, 401, Epoch{Owner: Member{"other", 400}})
			n.EngineStopped(at(tt.claimed), 1)
			beatAll(n, tt.claimed, 24*time.Second)
			n.KeySeen(at(25*time.Second), "other", 500, tt.end)
			if strings.Contains(name, "and begun") {
				n.KeySeen(at(25*time.Second), "other", 501, Key{})
			}
			n.EpochSeen(at(25*time.Second), 1, 502, Epoch{Owner: n.Member()})
			assert.Equal(t, n.byShard[1].granter.ready, at(25*time.Second+tt.waits), "ready after")
		})
	}
}

func TestOptions(t *testing.T) {
	good := testOptions()
	assert.NoError(t, good.validate())
	cases := map[string]func(o *Options){
		"cluster.node":   func(o *Options) { o.Node = "" },
		"cluster.shards": func(o *Options) { o.Shards = 0 },
		"cluster.weight": func(o *Options) { o.Weight = 0 },
		"margin":         func(o *Options) { o.Margin = o.TTL / 50 },
		"heartbeat":      func(o *Options) { o.Heartbeat = o.TTL / 2 },
		"limits":         func(o *Options) { o.Limits = 0 },
	}
	for want, change := range cases {
		o := testOptions()
		change(&o)
		_, err := NewNode(at(0), o)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", want, err)
	}
	o := testOptions()
	got := o.stretch(math.MaxInt64)
	assert.True(t, got == never && at(0).Add(got) >= at(0), "the longest delay becomes %v", got)
}
