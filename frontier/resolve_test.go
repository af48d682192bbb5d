package frontier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

func TestNamesThatLeadNowhere(t *testing.T) {
	for _, c := range []struct {
		name     string
		report   ResolveReport
		state    storage.State // of the URLs after a day
		resolved int           // at most so many times in a day
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
			if len(w.log) > 0 || w.resolved > c.resolved {
				t.Errorf("%d requests, %d resolutions", len(w.log), w.resolved)
			}
			if !w.f.Finished(w.now, time.Hour) {
				t.Errorf("not finished: %v", w.f.Places())
			}
		})
	}
}

// TestNameComesBack crawls a host whose name servers were down, and one whose
// name is new, without anybody touching it.
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
		if len(w.pages()) != 10 {
			t.Errorf("%+v: %d pages", report, len(w.pages()))
		}
	}
}

// TestOtherAddress tries another address of a name when one does not answer.
func TestOtherAddress(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 10)...)
	w.resolve = func(Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::1"), addressAt(1)}, TTL: time.Hour}
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
	if six != 1 || len(w.pages()) != 10 {
		t.Errorf("%d requests to the address that does not answer, %d pages", six, len(w.pages()))
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
		if w.lookups > 3 {
			t.Fatalf("%d names are being looked up", w.lookups)
		}
	}
	if len(w.pages()) != 50 {
		t.Errorf("%d pages", len(w.pages()))
	}
}

// TestRestart keeps a host's waits over a stop, and owes a delay after a crash.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		crash bool
		least time.Duration // from the last request of the old process, or its end
	}{
		{"stopped", false, 20 * time.Second},
		{"crashed", true, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, testOptions(), newMemory())
			w.add(urls("http://a.test/", 10)...)
			w.answer = func(Lease) answer {
				return answer{took: 10 * time.Millisecond, body: "User-agent: *\nCrawl-delay: 20\n"}
			}
			w.open()
			w.run(50 * time.Second)
			requests := len(w.log)
			from := w.log[requests-1].end
			if c.crash {
				from = w.now
				w.crash()
			}
			w.open()
			w.run(time.Minute)
			if next := w.log[requests]; next.start.Sub(from) < c.least || next.start.Sub(from) > c.least+time.Second || next.kind != Page {
				t.Errorf("%v after %v: %v", next, from.Sub(epoch), next.start.Sub(from))
			}
			w.checkManners()
		})
	}
}

// TestRestartOfUnknownHost leaves a host alone for ten seconds after a crash if
// nobody knows what its robots.txt asks for.
func TestRestartOfUnknownHost(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.open()
	w.run(50 * time.Millisecond) // robots.txt is under way
	w.crash()
	at := w.now
	w.open()
	w.run(time.Minute)
	if first := w.log[1]; first.start.Sub(at) < RestartDelay {
		t.Errorf("%v, %v after the crash", first, first.start.Sub(at))
	}
}

// TestCrawlDelayOfQuietOrigin keeps the Crawl-delay that an origin without work asks
// for, in a later process too, which does not read its robots.txt.
func TestCrawlDelayOfQuietOrigin(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("https://a.test/1")
	w.add(urls("http://a.test/", 10)...)
	w.answer = func(l Lease) answer {
		a := answer{took: 10 * time.Millisecond}
		if l.URL.Scheme() == "https" {
			a.body = "User-agent: *\nCrawl-delay: 20\n"
		}
		return a
	}
	w.open()
	w.run(70 * time.Second)
	w.open()
	w.events, w.busy = nil, 0
	requests := len(w.log)
	w.finish(time.Hour, time.Hour)
	for _, r := range w.log[requests:] {
		if r.delay != 20*time.Second {
			t.Fatalf("%v: delay %v", r, r.delay)
		}
	}
	if len(w.pages()) != 11 {
		t.Errorf("asked %q", w.pages())
	}
}

// TestWaitOfDormantHost keeps a wait though the disk says that it is over, as it
// does when the wall clock was set forward.
func TestWaitOfDormantHost(t *testing.T) {
	m := newMemory()
	w := newWorld(t, testOptions(), m)
	w.add(urls("http://a.test/", 3)...)
	w.answer = func(l Lease) answer {
		a := answer{took: 10 * time.Millisecond}
		if l.Kind == Robots {
			a.retryAfter = time.Hour
		}
		return a
	}
	w.open()
	w.run(10 * time.Minute)
	if n := w.f.Places()["dormant"]; n != 1 {
		t.Fatalf("the host should be dormant: %v", w.f.Places())
	}
	m.hosts[1].Politeness = nil
	w.finish(2*time.Hour, 3*time.Hour)
	if gap := w.log[1].start.Sub(w.log[0].end); gap < time.Hour {
		t.Errorf("asked again after %v", gap)
	}
}

func TestOptionsValidate(t *testing.T) {
	if err := DefaultOptions().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"attempts": func(o *Options) { o.MaxAttempts = 0 }, "resolvers": func(o *Options) { o.Resolvers = 0 },
		"heads": func(o *Options) { o.Heads = 0 }, "hosts": func(o *Options) { o.ActiveHosts = -1 },
		"bytes": func(o *Options) { o.ActiveBytes = 0 }, "tokens": func(o *Options) { o.Tokens = nil },
		"politeness": func(o *Options) { o.Politeness.PerIP = 0 },
	} {
		o := DefaultOptions()
		change(&o)
		if _, err := New(o, NewScope(ModeAny, nil, nil), epoch); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A host that moves is asked at its new address when the old answer has ended, and not long after: its time to live counts, from 30 s.
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
			t.Errorf("TTL %v: the old address was asked until %v after the move", ttl, late)
		}
	}
}
