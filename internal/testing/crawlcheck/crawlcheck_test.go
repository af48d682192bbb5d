package crawlcheck

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// crawlVirtually runs the client with a fault in virtual time, and judges it.
func crawlVirtually(t *testing.T, o Options, fault string) (report Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.HTTPS = true
		o.Network = memnet.New(memnet.Options{Latency: time.Millisecond})
		if fault == "honesty-token" {
			o.Token = "refbot"
		}
		lab := must.Get(New(o))(t)
		defer lab.Close()
		run := Run{Starts: []time.Time{time.Now()}, Exited: true}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newClient(ctx, lab, fault, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.crawl(lab.Start())
		}()
		for o.Kill && !lab.KillTime() {
			time.Sleep(look)
		}
		if o.Kill {
			cancel()
			<-done
			run.Starts = append(run.Starts, time.Now())
			c = newClient(t.Context(), lab, fault, c)
			c.crawl()
		}
		<-done
		report = lab.Report(run)
	})
	return report
}

// checkVerdicts reports the stations that are not as they have to be: broken is broken, not run what the run has no
// means for, all others hold.
func checkVerdicts(t *testing.T, r Report, broken string) {
	t.Helper()
	found := broken == ""
	for _, s := range r.Results {
		want := Holds
		if s.Station == broken {
			want, found = Broken, true
		}
		if s.Verdict != want && s.Verdict != NotRun {
			t.Errorf("%s: %s (%s), want %s", s.Station, s.Verdict, s.Why, want)
			for _, p := range s.Proof {
				t.Logf("%7.3f %.3f %s %s%s %d %v", p.At, p.Seconds, p.Method, p.Host, p.Path, p.Status, p.Breaks)
			}
		}
		assert.True(t, s.Verdict != Holds || s.Requests >= s.Least && s.Requests != 0,
			"%s holds without evidence: %d requests", s.Station, s.Requests)
		assert.True(t, (s.Verdict != Broken || s.Why != "") && (s.Verdict != NotRun || s.Station != broken), "%+v", s)
	}
	assert.True(t, found, "there is no station %s", broken)
}

// TestReference: a client without a fault holds everything, however it reaches the hosts.
func TestReference(t *testing.T) {
	for name, o := range map[string]Options{
		"names": {Seed: 1}, "killed": {Seed: 2, Kill: true}, "ports": {Seed: 3, Reach: testweb.ByPort},
		"addresses": {Seed: 4, Reach: testweb.ByAddress}, "proxy": {Seed: 5, Proxy: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := crawlVirtually(t, o, "")
			checkVerdicts(t, r, "")
			i := slices.IndexFunc(r.Results, func(s Result) bool { return s.Station == "robots-scheme" })
			assert.True(t, i >= 0 && r.Results[i].Verdict == Holds, "https is not judged")
		})
	}
}

// TestNoPassWithoutEvidence: neither too few requests, nor more than can be recorded, nor a gap in what was seen hold.
func TestNoPassWithoutEvidence(t *testing.T) {
	at := time.Now()
	log := testweb.Log{{Start: at, End: at, Host: "h", Method: "GET", Path: "/", UserAgent: "bot/1"}}
	quiet := Station{Name: "a-b", judge: func(*evidence) {}}
	lacking := Station{Name: "a-b", judge: func(e *evidence) { e.missing("something") }}
	for _, c := range []struct {
		name    string
		station running
		log     testweb.Log
		flooded bool
		want    Verdict
	}{
		{"enough", running{Station: quiet, least: 1}, log, false, Holds},
		{"nothing", running{Station: quiet}, nil, false, NotShown},
		{"too few", running{Station: quiet, least: 2}, log, false, NotShown},
		{"a flood", running{Station: quiet, least: 1}, log, true, NotShown},
		{"a gap", running{Station: lacking, least: 1}, log, false, NotShown},
		{"no means", running{Station: quiet, not: kill}, log, false, NotRun},
	} {
		assert.Equal(t, c.station.result(&evidence{log: c.log, all: c.log, end: at}, c.flooded).Verdict, c.want, c.name)
	}
	for agent, token := range map[string]string{
		"examplebot/1.0": "examplebot", "Mozilla/5.0 (compatible; example-bot/2; +http://x.test)": "example-bot",
		"Mozilla/5.0 (X11; Linux) Chrome/1": "", "": "", "(x)": "", "a_b c": "a_b",
	} {
		assert.Equal(t, ProductToken(agent), token, agent, "has the token")
	}
}

// TestOnly: patterns choose stations, and those with ! leave some of them out.
func TestOnly(t *testing.T) {
	for patterns, want := range map[string]string{
		"": "pace-gap robots-500 traps-maze", "pace-*": "pace-gap", "!traps-*": "pace-gap robots-500",
		"robots-*,pace-*,!robots-5*": "pace-gap", "no-such": "",
	} {
		var got []string
		for _, name := range []string{"pace-gap", "robots-500", "traps-maze"} {
			if is, err := matches(patterns, name); err != nil || is {
				got = append(got, name)
			}
		}
		assert.Equal(t, strings.Join(got, " "), want, patterns, "matches", got)
	}
	assert.Fails(matches("!robots-[", "robots-500"))(t, nil, "a pattern that is none has no error")
}

// TestOnceAfterKill: a page that a killed crawler may not have committed may be requested again, any other may not.
func TestOnceAfterKill(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	killed := at.Add(time.Minute)
	for name, c := range map[string]struct {
		first, second time.Time
		broken        bool
	}{
		"before the kill": {at, at.Add(time.Second), true},
		"committed":       {at, killed.Add(time.Second), true},
		"in flight":       {killed.Add(-time.Second), killed.Add(time.Second), false},
		"after the kill":  {killed.Add(time.Second), killed.Add(2 * time.Second), true},
	} {
		var log testweb.Log
		for _, start := range []time.Time{c.first, c.second} {
			log = append(log, testweb.Request{Host: "h", Method: "GET", Path: "/a", Start: start, End: start})
		}
		e := &evidence{log: log, starts: []time.Time{at, killed}}
		if e.once(log); (e.why != "") != c.broken {
			t.Errorf("%s: %q", name, e.why)
		}
	}
}

// TestHeavyFaults: each fault breaks its station and no other.
func TestHeavyFaults(t *testing.T) {
	for _, s := range Stations() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			checkVerdicts(t, crawlVirtually(t, Options{Seed: 5, Kill: s.needs == kill}, s.Name), s.Name)
		})
	}
}

// TestHeavySeeds: 20 webs judge alike, with a fault and without.
func TestHeavySeeds(t *testing.T) {
	for seed := range uint64(20) {
		fault := ""
		if seed%2 == 1 {
			fault = "robots-longest"
		}
		checkVerdicts(t, crawlVirtually(t, Options{Seed: seed}, fault), fault)
	}
}
