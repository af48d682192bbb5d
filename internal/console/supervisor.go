package console

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// supervisor is a service manager that wants to know the state of this process: systemd with
// Type=notify. sd_notify(3) describes the messages. A nil supervisor gets none.
type supervisor struct {
	socket   string // NOTIFY_SOCKET
	now      func() time.Time
	watchdog time.Duration // WATCHDOG_USEC: the longest silence before it ends the process; 0: no watchdog
}

// FindSupervisor reads the supervisor from the environment. It returns nil if there is none. now is the clock that the
// watch reads.
func FindSupervisor(getenv func(string) string, now func() time.Time) *supervisor {
	s := &supervisor{socket: getenv("NOTIFY_SOCKET"), now: now}
	if s.socket == "" {
		return nil
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		s.watchdog = time.Duration(usec) * time.Microsecond
	}
	return s
}

// notify sends a message. It ignores errors: the crawl does not depend on the supervisor.
func (s *supervisor) notify(message string) {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(message))
}

// Vital is what a supervisor wants to know.
type Vital struct {
	Ready, Alive bool
	Text         string // the state in a line
}

// VitalOf says that a crawl is alive for as long as its dispatcher is: a dispatcher that hangs is
// detected by the age of its status.
func VitalOf(status func() crawl.Status) func(now time.Time, silence time.Duration) Vital {
	return func(now time.Time, silence time.Duration) Vital {
		st := status()
		return Vital{
			Ready: st.State != "opened",
			Alive: now.Sub(st.At) < silence || st.State == "stopping" || st.State == "finished",
			Text: fmt.Sprintf("%s: %d fetched, %d queued, %.1f pages/s", st.State, st.URLs["fetched"],
				st.URLs["queued"], st.PagesPerSec),
		}
	}
}

// Watch reports that the process is ready when it works, and from then on that it is alive. vital is
// given the longest silence that the supervisor allows. end reports that the process stops, and ends the
// watch.
func (s *supervisor) Watch(vital func(now time.Time, silence time.Duration) Vital) (end func()) {
	if s == nil {
		return func() {}
	}
	interval := time.Second
	if s.watchdog > 0 {
		interval = min(interval, s.watchdog/4)
	}
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for ready := false; ; {
			v := vital(s.now(), s.watchdog)
			if !ready && v.Ready {
				ready = true
				s.notify("READY=1")
			}
			if ready {
				s.notify(s.alive(v))
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		s.notify("STOPPING=1")
		close(done)
		watching.Wait()
	}
}

// alive is the message at a moment.
func (s *supervisor) alive(v Vital) string {
	message := "STATUS=" + v.Text
	if s.watchdog > 0 && v.Alive {
		message += "\nWATCHDOG=1"
	}
	return message
}
