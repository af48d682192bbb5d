package crawlcheck

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// crawlVirtually runs the client with a fault in virtual time, and judges it.
func crawlVirtually(t *testing.T, o Options, fault string) (report Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Network = memnet.New(memnet.Options{Latency: time.Millisecond})
		if fault == "honesty-token" {
			o.Token = "refbot"
		}
		lab, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
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
		for o.Kill && !lab.killTime() {
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
		if s.Verdict == Holds && (s.Requests < s.Least || s.Requests == 0) {
			t.Errorf("%s holds without evidence: %d requests", s.Station, s.Requests)
		}
		if s.Verdict == Broken && s.Why == "" || s.Verdict == NotRun && s.Station == broken {
			t.Errorf("%+v", s)
		}
	}
	if !found {
		t.Errorf("there is no station %s", broken)
	}
}

// TestReference: a client without a fault holds everything, however it reaches the hosts.
func TestReference(t *testing.T) {
	for name, o := range map[string]Options{
		"names": {Seed: 1}, "killed": {Seed: 2, Kill: true}, "ports": {Seed: 3, Reach: testweb.ByPort},
		"addresses": {Seed: 4, Reach: testweb.ByAddress},
	} {
		t.Run(name, func(t *testing.T) { checkVerdicts(t, crawlVirtually(t, o, ""), "") })
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
		if got := c.station.result(&evidence{log: c.log, all: c.log, end: at}, c.flooded); got.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.Verdict, got.Why, c.want)
		}
	}
	for agent, token := range map[string]string{
		"examplebot/1.0": "examplebot", "Mozilla/5.0 (compatible; example-bot/2; +http://x.test)": "example-bot",
		"Mozilla/5.0 (X11; Linux) Chrome/1": "", "": "", "(x)": "", "a_b c": "a_b",
	} {
		if got := ProductToken(agent); got != token {
			t.Errorf("%q has the token %q, want %q", agent, got, token)
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

// TestHeavySeeds: 8 webs judge alike, with a fault and without.
func TestHeavySeeds(t *testing.T) {
	for seed := range uint64(8) {
		fault := ""
		if seed%2 == 1 {
			fault = "robots-longest"
		}
		checkVerdicts(t, crawlVirtually(t, Options{Seed: seed}, fault), fault)
	}
}
