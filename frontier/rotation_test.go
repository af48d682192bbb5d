package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Where there is room for two hosts out of eight, each gets its turn after a
// session of the others; without sessions the first ones are walked to their end.
func TestRotation(t *testing.T) {
	for _, c := range []struct {
		session, served int // hosts that were asked in the time
	}{{10, 8}, {0, 2}, {100_000, 2}} {
		m := newMemory()
		for i := range 8 {
			m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 5000)
		}
		o := testOptions()
		o.ActiveHosts, o.Session = 2, c.session
		w := newWorld(t, o, m)
		w.open()
		w.run(20 * time.Minute)
		if n := len(w.served()); n != c.served {
			t.Errorf("session %d: %d hosts were asked, want %d: %v", c.session, n, c.served, w.served())
		}
		if c.served == 8 {
			w.evenly(8, 1.3)
			row, longest := 0, 0
			for i, r := range w.log {
				if row++; i > 1 && r.host != w.log[i-1].host && r.host != w.log[i-2].host {
					row = 0
				}
				longest = max(longest, row)
			}
			if longest > 3*c.session {
				t.Errorf("two hosts were asked %d times in a row", longest)
			}
		}
		if least := 20 * 60 * 2 * 6 / 10; len(w.log) < least {
			t.Errorf("session %d: %d requests, there could be more than %d", c.session, len(w.log), least)
		}
		w.checkManners()
	}
}

// A host that nobody waits for goes on after its session.
func TestRotationWithRoom(t *testing.T) {
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "giant.test", Port: 80}, 500)
	o := testOptions()
	o.ActiveHosts, o.Session, o.Heads = 1, 3, 64
	w := newWorld(t, o, m)
	w.open()
	w.finish(time.Hour, time.Hour)
	if w.loads > 40 || w.resolved > 5 {
		t.Errorf("%d loads and %d resolutions for 500 URLs of one host", w.loads, w.resolved)
	}
}
