package main

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
)

// supervisor is the one that has started this process and wants to know how it is: systemd with Type=notify. What it is told is
// described in sd_notify(3). A nil one is told nothing.
type supervisor struct {
	socket   string        // NOTIFY_SOCKET
	watchdog time.Duration // WATCHDOG_USEC: it ends a process that says nothing for so long; 0: it does not
}

// findSupervisor reads what the supervisor says in the environment; nil: there is none.
func findSupervisor(getenv func(string) string) *supervisor {
	s := &supervisor{socket: getenv("NOTIFY_SOCKET")}
	if s.socket == "" {
		return nil
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		s.watchdog = time.Duration(usec) * time.Microsecond
	}
	return s
}

// tell sends a message. That nobody listens is not our trouble.
func (s *supervisor) tell(message string) {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(message))
}

// watch tells that the crawl is ready when it works, and from then on that it lives for as long as its dispatcher does: one that hangs
// is found out by a status that grows old. end tells that the crawl stops, and ends the watch.
func (s *supervisor) watch(status func() crawl.Status) (end func()) {
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
			st := status()
			if !ready && st.State != "opened" {
				ready = true
				s.tell("READY=1")
			}
			if ready {
				s.tell(s.alive(&st, time.Now()))
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		s.tell("STOPPING=1")
		close(done)
		watching.Wait()
	}
}

// alive is the message of a moment.
func (s *supervisor) alive(st *crawl.Status, now time.Time) string {
	message := fmt.Sprintf("STATUS=%s: %d fetched, %d queued, %.1f pages/s", st.State, st.URLs["fetched"], st.URLs["queued"], st.PagesPerSec)
	if s.watchdog > 0 && (now.Sub(st.At) < s.watchdog || st.State == "stopping" || st.State == "finished") {
		message += "\nWATCHDOG=1"
	}
	return message
}
