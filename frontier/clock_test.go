package frontier

import (
	"testing"
	"time"
	"unsafe"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// setClock makes a world begin now, by a clock with a monotonic reading.
func (w *world) setClock() {
	w.base = time.Now()
	w.now = w.base
}

// read is what both clocks of the machine show at an instant.
func (w *world) read(at time.Time) time.Time {
	if w.base.IsZero() {
		return at
	}
	return stepWall(w.base.Add(at.Sub(w.base)), w.wall)
}

// step sets the wall clock.
func (w *world) stepClock(by time.Duration) {
	w.wall += by
	w.now = w.read(w.now)
}

// stepWall moves the wall reading of an instant by whole seconds and leaves its monotonic reading.
// The time package has no way to say this: it relies on its layout.
func stepWall(t time.Time, by time.Duration) time.Time {
	reading := (*struct {
		wall uint64 // a flag, 33 bits of seconds, 30 bits of nanoseconds
		ext  int64  // monotonic reading
		loc  *time.Location
	})(unsafe.Pointer(&t))
	reading.wall += uint64(int64(by/time.Second)) << 30
	return t
}

// TestClockIsSet crawls hosts with a Crawl-delay of a minute. One of them demands a wait of an
// hour. Meanwhile the wall clock is set back by an hour or forward by a day, or runs on for an hour
// while the machine is suspended and the monotonic clock stands still. By true time no gap is
// shorter, and none is longer, also after a restart. Only a clock that is set forward between two
// runs cannot be distinguished from time that passed.
func TestClockIsSet(t *testing.T) {
	for _, c := range []struct {
		name    string
		step    time.Duration
		restart bool
	}{
		{"set back by an hour", -time.Hour, false},
		{"set forward by a day", 24 * time.Hour, false},
		{"suspended for an hour", time.Hour, false}, // the same to this process: the wall clock jumps
		{"set back by an hour, and a restart", -time.Hour, true},
		{"set forward by a day, and a restart", 24 * time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			m := newMemory()
			for _, name := range []string{"steady.test", "tired.test"} {
				m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 10_000)
			}
			w := newWorld(t, o, m)
			w.setClock()
			refused := false
			w.answer = func(l Lease) answer {
				a := answer{took: 100 * time.Millisecond, body: "User-agent: *\nCrawl-delay: 60\n",
					maxAge: 24 * time.Hour}
				if l.Kind == Page && l.HostName == "tired.test" && !refused {
					refused = true
					a.signal, a.state, a.retryAfter = politeness.SignalThrottled, storage.Retrying, 2*time.Hour
				}
				return a
			}
			w.open()
			w.run(10 * time.Minute)
			w.stepClock(c.step)
			w.run(30 * time.Second)
			if c.restart {
				w.flush()
				w.run(time.Second)
				w.crash()
				w.o.HeldSince = time.Time{} // all of it is committed
				w.open()
			}
			w.run(5 * time.Hour)
			last := map[string]request{}
			longest := map[string]time.Duration{}
			for i, r := range w.log {
				if before, ok := last[r.host]; ok && i > 4 { // not those before robots.txt was read
					gap := r.start.Sub(before.end) // by the monotonic readings
					must.True(t, gap >= time.Minute, "%v: %v after the request before", r.url, gap)
					longest[r.host] = max(longest[r.host], gap)
				}
				last[r.host] = r
			}
			assert.AtMost(t, longest["steady.test"], 3*time.Minute, "a host with a delay of a minute waited for")
			if c.restart && c.step > 0 {
				return // a step that no commit of the host has followed counts as time that passed
			}
			most := 2*time.Hour + 3*time.Minute
			if c.restart {
				most += 10 * time.Minute // what is left is the whole length at most
			}
			rest := longest["tired.test"]
			assert.True(t, rest >= 2*time.Hour && rest <= most, "a host that demanded two hours of rest had %v", rest)
		})
	}
}

// TestDueTimes: due times go on with the monotonic clock and follow the wall clock forward, not
// back.
func TestDueTimes(t *testing.T) {
	start := time.Now()
	f := must.Get(New(testOptions(), NewScope(ModeAny, nil, nil), start))(t)
	for _, c := range []struct {
		name       string
		after      time.Duration // by the monotonic clock, from the start
		wall, want time.Duration // how far the wall clock and the due times are ahead of that
	}{
		{"as it began", time.Minute, 0, 0},
		{"set back", 2 * time.Minute, -time.Hour, 0},
		{"set forward", 3 * time.Minute, 24 * time.Hour, 24 * time.Hour},
		{"set right again", 4 * time.Minute, 0, 24 * time.Hour},
		{"further forward", 5 * time.Minute, 48 * time.Hour, 48 * time.Hour},
	} {
		now := stepWall(start.Add(c.after), c.wall)
		f.readClock(now)
		due := f.dueTime(now)
		assert.Equal(t, due.Sub(start.Round(0)), c.after+c.want, c.name, "due times after the start")
		wait := f.fromUnix(uint32(due.Unix()+61)) - f.instant(now)
		assert.True(t, wait >= instant(time.Minute) && wait <= instant(time.Minute+time.Second),
			"%s: what is due in a minute waits for %v", c.name, time.Duration(wait))
	}
}
