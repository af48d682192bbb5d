package frontier

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestLookupLists: known names come first and always have a lookup to spare, seeds come before
// other new names, and names that failed come last, though now and then one of them comes before
// the others.
func TestLookupLists(t *testing.T) {
	var n lookups
	for list := range nameLists {
		for i := range 20 {
			n.lists[list] = append(n.lists[list], &host{id: storage.HostID(100*list + i)})
		}
	}
	take := func(most int) (list int) {
		h, unproven := n.next(most)
		if h == nil {
			return -1
		}
		list = int(h.id) / 100
		assert.True(t, unproven == (list != knownNames), "host %d is a guess: %v", h.id, unproven)
		return list
	}
	for i := range 20 {
		assert.Equal(t, take(100), knownNames, "lookup", i, "is from line")
	}
	for range 20 {
		n.end(false)
	}
	var got []int
	for range 16 {
		got = append(got, take(100))
	}
	s, f := seedNames, failedNames
	assert.Slice(t, got, []int{s, s, s, s, s, s, s, f, s, s, s, s, s, s, s, f}, "lines")
	assert.Equal(t, take(18), -1, "with 16 guesses of 18 lookups under way another one is made from line")
	n.lists[knownNames] = append(n.lists[knownNames], &host{id: 7})
	assert.Equal(t, take(18), knownNames, "a known name has no lookup to spare")
	n.end(true)
	assert.Equal(t, take(18), seedNames, "line where one guess has ended")
	for range 15 {
		n.end(true)
	}
	n.end(true)
	n.end(false)
	assert.Equal(t, n.inFlight+n.unproven, 0, n.inFlight, "lookups", n.unproven, "guesses")
	for most := 1; most <= 2; most++ {
		assert.Equal(t, take(most), seedNames, most, "lookups at a time: line")
		assert.Equal(t, take(most), -1, most, "lookups at a time: another one from line")
		n.end(true)
	}
}

// TestKnownNameNeverWaits: a host that was resolved once is fetched from at its pace, though
// thousands of names that do not exist wait for lookups that take long, and though its own address
// has to be looked up again and again. There is one worker.
func TestKnownNameNeverWaits(t *testing.T) {
	m := newMemory()
	w := newWorld(t, testOptions(), m)
	w.quick, w.workers = true, 1
	w.add(urls("http://live.test/", 900)...)
	w.resolve = func(l Lease) ResolveReport {
		if l.HostName == "live.test" {
			return ResolveReport{Addresses: []netip.Addr{addressAt(1)}}
		}
		return ResolveReport{Absent: true, Reason: 70}
	}
	w.nameTakes = func(l Lease) time.Duration {
		if l.HostName == "live.test" {
			return 100 * time.Millisecond
		}
		return 10 * time.Second
	}
	w.open()
	w.run(3 * time.Second)
	var dead []string
	for i := range 5000 {
		dead = append(dead, fmt.Sprintf("http://dead%d.test/", i))
	}
	w.add(dead...)
	w.run(10 * time.Minute)
	pages := len(w.pages())
	assert.AtLeast(t, pages, (10*603/11)-3, "pages in ten minutes")
	again := 0
	for _, l := range w.names {
		if l.name == "live.test" {
			again++
		}
	}
	assert.AtLeast(t, again, 9, "its name was looked up times")
}

// TestSeedsAreLookedUpFirst: before names that pages link to.
func TestSeedsAreLookedUpFirst(t *testing.T) {
	o := testOptions()
	o.Resolvers = 2
	w := newWorld(t, o, newMemory())
	var b storage.Batch
	for i := range 40 {
		f := w.found(fmt.Sprintf("http://h%d.test/", i))
		f.Seed = i%4 == 3
		b.Found = append(b.Found, f)
	}
	w.commit(b)
	w.nameTime = time.Second
	w.open()
	w.run(time.Minute)
	must.True(t, len(w.names) >= 40, "%d lookups", len(w.names))
	late := 0
	for i, l := range w.names[:40] {
		var n int
		must.Get(fmt.Sscanf(l.name, "h%d.test", &n))(t)
		if seed := n%4 == 3; seed && i > 12 {
			late++
		}
	}
	assert.AtMost(t, late, 0, "of 10 seeds were looked up late", w.names)
}

// TestKnownAddresses: what is known without a lookup takes none, and comes at once: an address
// literal, one that may not be reached, and a name whose answer holds still.
func TestKnownAddresses(t *testing.T) {
	o := testOptions()
	o.Resolvers = 1
	o.Known = func(name string, _ bool) (ResolveReport, bool) {
		switch name {
		case "192.0.2.7":
			return ResolveReport{Addresses: []netip.Addr{addressAt(7)}, TTL: time.Hour}, true
		case "10.0.0.1":
			return ResolveReport{Final: true, Reason: 71, TTL: time.Hour}, true
		}
		return ResolveReport{}, false
	}
	w := newWorld(t, o, newMemory())
	w.nameTime = time.Hour
	w.add("http://slow.test/", "http://slower.test/", "http://10.0.0.1/")
	w.add(urls("http://192.0.2.7/", 20)...)
	w.open()
	w.run(time.Minute)
	assert.Equal(t, len(w.pages()), 20, "pages of an address literal")
	if o := w.state(t, "http://10.0.0.1/"); o.State != storage.Failed || o.Reason != 71 {
		t.Errorf("an address that may not be reached: %+v", o)
	}
	for range 3 { // the host becomes dormant in between
		w.run(5 * time.Minute)
		w.add(fmt.Sprintf("http://10.0.0.1/%d", w.now.Unix()))
		w.run(time.Second)
		assert.Equal(t, w.state(t, fmt.Sprintf("http://10.0.0.1/%d", w.now.Unix()-1)).State, storage.Failed,
			"a later URL of that address")
	}
	assert.True(t, len(w.names) == 1 && strings.HasPrefix(w.names[0].name, "slow"), "looked up: %v", w.names)
	w.run(3 * time.Hour)
	assert.Equal(t, len(w.pages()), 22, "pages")
}

// TestNoLookupBeforeItsTime: a name that does not exist is not looked up again before the time that
// name servers gave, whether its host is active, dormant, or gets more URLs; and its URLs fail only
// after as many answers as a URL has attempts.
func TestNoLookupBeforeItsTime(t *testing.T) {
	const ttl = 290 * time.Second
	for _, active := range []int{20_000, 1} {
		o := testOptions()
		o.ActiveHosts, o.Session = active, 20
		w := newWorld(t, o, newMemory())
		w.quick = true
		w.add(urls("http://dead.test/", 3)...)
		w.add(urls("http://other.test/", 3000)...)
		w.resolve = func(l Lease) ResolveReport {
			if l.HostName == "dead.test" {
				return ResolveReport{Absent: true, Reason: 70, TTL: ttl}
			}
			return ResolveReport{Addresses: []netip.Addr{addressAt(1)}, TTL: time.Hour}
		}
		w.open()
		w.run(10 * time.Minute)
		w.add("http://dead.test/more")
		w.run(50 * time.Minute)
		assert.AtLeast(t, len(w.pages()), 2500, active, "active hosts pages of the other host")
		var last time.Time
		n := 0
		for _, l := range w.names {
			if l.name != "dead.test" {
				continue
			}
			gap := l.at.Sub(last)
			assert.True(t, n <= 0 || gap >= ttl, "%d active hosts: looked up again after %v", active, gap)
			last, n = l.at, n+1
		}
		assert.Equal(t, n, int(o.MaxAttempts), active, "active hosts: looked up times", o.MaxAttempts)
		for _, u := range append(urls("http://dead.test/", 3), "http://dead.test/more") {
			o := w.state(t, u)
			assert.True(t, o.State == storage.Failed && o.Reason == 70, "%d active hosts: %s is %+v", active, u, o)
		}
	}
}

// TestFailedNamesWait: while there are names that were never looked up, one lookup in eight is of a
// name that failed, however many of these wait.
func TestFailedNamesWait(t *testing.T) {
	const hosts = 3000
	o := testOptions()
	o.Workers = 64
	w := newWorld(t, o, newMemory())
	w.quick = true
	var all []string
	for i := range hosts {
		all = append(all, fmt.Sprintf("http://dead%d.test/", i))
	}
	w.add(all...)
	w.nameTime = 2 * time.Second
	w.resolve = func(Lease) ResolveReport { return ResolveReport{Absent: true, Reason: 70} }
	w.open()
	w.run(3 * time.Minute)
	seen := map[string]bool{}
	for i, l := range w.names {
		if seen[l.name] = true; len(seen) == hosts {
			assert.AtMost(t, i+1-hosts, hosts/failedTurn+hosts/20, "lookups of names that led nowhere before all",
				hosts, "others")
			return
		}
	}
	t.Errorf("%d of %d names were looked up", len(seen), hosts)
}

func TestNamesWithoutAddress(t *testing.T) {
	for _, c := range []struct {
		name     string
		report   ResolveReport
		state    storage.State // of the URLs after a day
		resolved int           // most lookups in a day
	}{
		{"no such name", ResolveReport{Absent: true, Reason: 70}, storage.Failed, 30},
		{"out of reach", ResolveReport{Final: true, Reason: 71}, storage.Failed, 5},
		{"name servers down", ResolveReport{Reason: 72}, storage.Queued, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, testOptions(), newMemory())
			all := urls("http://a.test/", 500)
			w.add(all...)
			w.resolve = func(Lease) ResolveReport { return c.report }
			w.open()
			w.run(24 * time.Hour)
			for _, u := range all {
				if o := w.state(t, u); o.State != c.state || o.State == storage.Failed && o.Reason != c.report.Reason {
					t.Fatalf("%s: %+v, want %v because of %v", u, o, c.state, c.report.Reason)
				}
			}
			assert.True(t, len(w.log) == 0 && w.resolved <= c.resolved, "%d requests, %d resolutions", len(w.log),
				w.resolved)
			if !w.f.Finished(w.now, time.Hour) {
				t.Errorf("not finished: %v", w.f.hostStates())
			}
		})
	}
}

// TestNameComesBack crawls a host whose name servers were down, and one whose name is new, without
// anybody touching it.
func TestNameComesBack(t *testing.T) {
	for _, report := range []ResolveReport{{Absent: true}, {}, {Aborted: true}} {
		w := newWorld(t, testOptions(), newMemory())
		w.add(urls("http://a.test/", 10)...)
		good, n := w.resolve, 0
		w.resolve = func(l Lease) ResolveReport {
			if n++; n <= 3 {
				return report
			}
			return good(l)
		}
		w.open()
		w.finish(24*time.Hour, 24*time.Hour)
		assert.Equal(t, len(w.pages()), 10, report, "pages")
	}
}

// TestOtherAddress tries another address of a name when one does not answer, and only then has those of
// both families looked up.
func TestOtherAddress(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 10)...)
	var every []bool
	w.resolve = func(l Lease) ResolveReport {
		every = append(every, l.Every)
		r := ResolveReport{Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::1")}, TTL: time.Hour}
		if l.Every {
			r.Addresses = append(r.Addresses, addressAt(1))
		}
		return r
	}
	w.answer = func(l Lease) answer {
		if l.Address.Is6() {
			return answer{took: time.Second, signal: politeness.SignalUnreachable, state: storage.Retrying, failure: 2}
		}
		return answer{took: time.Millisecond}
	}
	w.open()
	w.finish(24*time.Hour, 24*time.Hour)
	six := 0
	for _, r := range w.log {
		if r.address.Is6() {
			six++
		}
	}
	assert.True(t, six == 1 && len(w.pages()) == 10, "%d requests to the address that does not answer, %d pages", six,
		len(w.pages()))
	assert.True(t, len(every) >= 2 && !every[0] && every[1], "both families wanted: %t", every)
}

// TestBothFamilies: a lookup after one that failed is for both families, and so is every lookup while
// addresses are opted out. That a name does not exist was said of both.
func TestBothFamilies(t *testing.T) {
	out := must.Get(optout.New(optout.Entry{Scope: optout.ScopeRange, Value: "192.0.2.0/24", At: epoch}))(t)
	for name, c := range map[string]struct {
		first ResolveReport
		list  *optout.List
		want  string // of the first two lookups
	}{
		"failed":         {ResolveReport{Reason: 70}, nil, "[false true]"},
		"does not exist": {ResolveReport{Reason: 70, Absent: true, TTL: time.Minute}, nil, "[false false]"},
		"opt-outs": {ResolveReport{Reason: 70, Absent: true, TTL: time.Minute}, optout.NewList(out),
			"[true true]"},
	} {
		w := newWorld(t, testOptions(), newMemory())
		w.scope = w.scope.WithOptOuts(c.list)
		w.add("http://a.test/")
		var every []bool
		w.resolve = func(l Lease) ResolveReport {
			every = append(every, l.Every)
			return c.first
		}
		w.open()
		w.run(time.Hour)
		assert.True(t, len(every) >= 2 && fmt.Sprint(every[:2]) == c.want, "%s: both families wanted: %t, want %s",
			name, every, c.want)
	}
}

// TestResolvers bounds how many names are resolved at a time.
func TestResolvers(t *testing.T) {
	o := testOptions()
	o.Resolvers = 3
	w := newWorld(t, o, newMemory())
	for i := range 50 {
		w.add(fmt.Sprintf("http://h%d.test/", i))
	}
	w.nameTime = time.Second
	w.open()
	for w.step(epoch.Add(time.Minute)) {
		must.True(t, w.lookups <= 3, "%d names are being looked up", w.lookups)
	}
	assert.Equal(t, len(w.pages()), 50, "pages")
}

// TestAddressIsUsedForItsTime: a host that moves is fetched from at its new address when the old
// answer expires, and not long after: its time to live counts, from 30 s.
func TestAddressIsUsedForItsTime(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 30 * time.Second, 45 * time.Second, 10 * time.Minute} {
		o := testOptions()
		w := newWorld(t, o, newMemory())
		w.add(urls("http://a.test/", 2000)...)
		moved := epoch.Add(30 * time.Minute)
		w.resolve = func(Lease) ResolveReport {
			to := 1
			if !w.now.Before(moved) {
				to = 2
			}
			return ResolveReport{Addresses: []netip.Addr{addressAt(to)}, TTL: ttl}
		}
		w.open()
		w.run(time.Hour)
		last := epoch
		for _, r := range w.log {
			if r.address == addressAt(1) {
				last = r.start
			}
		}
		if late := last.Sub(moved); late > max(ttl, 30*time.Second) || late < -time.Minute {
			t.Errorf("TTL %v: the old address was used until %v after the move", ttl, late)
		}
	}
}
