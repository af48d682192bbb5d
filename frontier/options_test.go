package frontier

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Hosts that are not in memory wait by the delay that is in force now, and not by the one when they
// went there; others' waits stay.
func TestChangeOfHostsThatAreNotInMemory(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay, o.HostBudget = time.Hour, 0
	f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
	now := epoch.Add(time.Minute)
	for id, state := range map[storage.HostID]politeness.State{
		1: {LastEnd: now}, 2: {LastEnd: now}, 3: {LastEnd: now, Demands: politeness.Demands{Delay: 9 * time.Hour}},
		4: {LastEnd: now, Holds: []politeness.Hold{{Until: now.Add(7 * time.Hour), Length: 7 * time.Hour,
			Reason: politeness.ReasonRetryAfter}}},
	} {
		encoded := must.Get(state.AppendBinary(nil))(t)
		h := storage.Host{ID: id, Name: "h.example.com", Queues: queueOf(10), Politeness: encoded}
		h.Counts[storage.Fetched] = 5
		must.Do(t, f.Restore(&h, now))
	}
	waits := func(want map[storage.HostID]time.Duration) {
		t.Helper()
		for id, d := range want {
			v, _ := f.View(id)
			assert.Equal(t, v.Next.Sub(now).Round(time.Second), d, "host", id, "waits", v.State)
		}
	}
	waits(map[storage.HostID]time.Duration{1: time.Hour, 2: time.Hour, 3: 9 * time.Hour, 4: 7 * time.Hour})

	c := Change{Live: Live{Politeness: o.Politeness, Overrides: []Override{{Hosts: []string{"none.example"}}}},
		Overridden: map[storage.HostID]int{2: 0}}
	c.Politeness.Delay = 2 * time.Second
	c.Overrides[0].Politeness = o.Politeness
	c.Overrides[0].Politeness.Delay = 5 * time.Hour
	f.Change(c, now)
	waits(map[storage.HostID]time.Duration{1: 2 * time.Second, 2: 5 * time.Hour, 3: 9 * time.Hour,
		4: 7 * time.Hour})

	f.Change(Change{Live: Live{Politeness: o.Politeness, HostBudget: 5}}, now)
	assert.Equal(t, f.hostStates()[overBudget], 4, "hosts have no budget left")
	f.Change(Change{Live: Live{Politeness: o.Politeness}}, now)
	waits(map[storage.HostID]time.Duration{1: time.Hour, 2: time.Hour, 3: 9 * time.Hour, 4: 7 * time.Hour})
}

func TestOptionsValidate(t *testing.T) {
	must.Do(t, DefaultOptions().Validate())
	for name, change := range map[string]func(*Options){
		"attempts": func(o *Options) { o.MaxAttempts = 0 }, "resolvers": func(o *Options) { o.Resolvers = 0 },
		"heads": func(o *Options) { o.Heads = 0 }, "hosts": func(o *Options) { o.ActiveHosts = -1 },
		"bytes": func(o *Options) { o.ActiveBytes = 0 }, "tokens": func(o *Options) { o.Tokens = nil },
		"politeness": func(o *Options) { o.Politeness.PerIP = 0 },
	} {
		o := DefaultOptions()
		change(&o)
		assert.Fails(New(o, NewScope(ModeAny, nil, nil), epoch))(t, nil, name, "no error")
	}
}

// TestOverridesOfHosts: the closest name counts, and what robots.txt demands always counts.
func TestOverridesOfHosts(t *testing.T) {
	o := testOptions()
	with := func(change func(*politeness.Options)) politeness.Options {
		p := o.Politeness
		change(&p)
		return p
	}
	o.Overrides = []Override{
		{Hosts: []string{"*.example.com"},
			Politeness: with(func(p *politeness.Options) { p.Delay = 10 * time.Second })},
		{Hosts: []string{"*.b.example.com", "fast.example"},
			Politeness: with(func(p *politeness.Options) { p.Delay = 100 * time.Millisecond })},
		{Hosts: []string{"www.example.com"}, Politeness: with(func(p *politeness.Options) { p.Paused = true })},
		{Hosts: []string{"small.example"}, Politeness: o.Politeness, HostBudget: 3},
		{Hosts: []string{"slow.example"}, Politeness: with(func(p *politeness.Options) { p.Delay = 0 })},
	}
	m := newMemory()
	names := []string{"example.com", "a.example.com", "x.b.example.com", "b.example.com", "fast.example",
		"www.example.com", "small.example", "slow.example"}
	for _, name := range names {
		m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 1000)
	}
	w := newWorld(t, o, m)
	w.answer = func(l Lease) answer {
		a := answer{took: 50 * time.Millisecond}
		if l.HostName == "slow.example" && l.Kind == Robots {
			a.body = "User-agent: *\nCrawl-delay: 7\n"
		}
		return a
	}
	w.open()
	w.run(10 * time.Minute)
	w.checkManners()
	gaps := map[string]time.Duration{}
	last := map[string]request{}
	for _, r := range w.log {
		if before, ok := last[r.host]; ok {
			if gap := r.start.Sub(before.end); gaps[r.host] == 0 || gap < gaps[r.host] {
				gaps[r.host] = gap
			}
		}
		last[r.host] = r
	}
	for name, want := range map[string]time.Duration{
		"example.com": time.Second, "a.example.com": 10 * time.Second, "b.example.com": 10 * time.Second,
		"x.b.example.com": 100 * time.Millisecond, "fast.example": 100 * time.Millisecond,
		"slow.example": 7 * time.Second,
	} {
		assert.Equal(t, gaps[name], want, name, "was fetched from with gaps of")
	}
	served := w.served()
	assert.True(t, served["small.example"] == 3 && served["www.example.com"] == 0,
		"a budget of 3 came to %d pages, a pause to %d", served["small.example"], served["www.example.com"])
}

// A change of the hours ends the wait for them, also of hosts that are not in memory, and no other.
func TestChangeOfHours(t *testing.T) {
	o := testOptions()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var err error
	o.Politeness.Hours, err = politeness.NewHours("", []string{"22:00-06:00"}, "")
	must.True(t, err == nil, "%v", err)
	f, err := New(o, NewScope(ModeAny, nil, nil), now)
	must.Do(t, err)
	held := politeness.State{LastEnd: now, Holds: []politeness.Hold{{Until: now.Add(11 * time.Hour),
		Length: 11 * time.Hour, Reason: politeness.ReasonRetryAfter}}}
	for id, state := range map[storage.HostID]politeness.State{1: {LastEnd: now.Add(-time.Hour)}, 2: held} {
		encoded := must.Get(state.AppendBinary(nil))(t)
		h := storage.Host{ID: id, Name: "h.example.com", Queues: queueOf(10), Politeness: encoded}
		h.Counts[storage.Fetched] = 5
		must.Do(t, f.Restore(&h, now))
	}
	check := func(first, second time.Duration) {
		t.Helper()
		for id, want := range map[storage.HostID]time.Duration{1: first, 2: second} {
			if v, _ := f.View(id); v.Next.Sub(now).Round(time.Minute) != want {
				t.Errorf("host %d waits %v (%v), want %v", id, v.Next.Sub(now), v.Reason, want)
			}
		}
	}
	check(10*time.Hour, 11*time.Hour)
	same := o.Politeness
	same.Delay = 2 * time.Second
	f.Change(Change{Live: Live{Politeness: same}}, now)
	check(10*time.Hour, 11*time.Hour)
	same.Hours = nil
	f.Change(Change{Live: Live{Politeness: same}}, now)
	check(0, 11*time.Hour)
}
