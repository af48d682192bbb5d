package crawl

import (
	"testing"
	"time"
)

// TestAlarm: it rings, never before its instant, and for the last one that it was set to.
func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]alarm{"system": a, "timer": newTimerAlarm()} {
		t.Run(name, func(t *testing.T) { testAlarm(t, a) })
	}
}

func testAlarm(t *testing.T, a alarm) {
	ended := make(chan struct{})
	go func() { defer close(ended); a.watch() }()
	set := func(at time.Time) {
		t.Helper()
		if err := a.set(at); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, at time.Time) {
		t.Helper()
		select {
		case <-a.rings():
			if early := time.Until(at); early > 0 {
				t.Errorf("%s: it rang %v early", what, early)
			}
			a.rang()
		case <-time.After(time.Minute):
			t.Fatalf("%s: it does not ring", what)
		}
	}
	soon := func(d time.Duration) time.Time { return time.Now().Add(d) }

	at := soon(30 * time.Millisecond)
	set(at)
	await("set", at)
	at = soon(10 * time.Millisecond)
	set(at)
	set(at)
	await("set twice to the same", at)
	at = soon(-time.Hour)
	set(at)
	await("set to what has been", at)
	set(at)
	await("and again", at)
	set(soon(time.Hour))
	at = soon(20 * time.Millisecond)
	set(at)
	await("set to sooner", at)
	set(soon(10 * time.Second))
	at = soon(40 * time.Millisecond)
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	set(at)
	await("stopped and set anew", at)

	set(soon(50 * time.Millisecond))
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.rings():
		t.Error("it rings although it was stopped")
	case <-time.After(200 * time.Millisecond):
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}
