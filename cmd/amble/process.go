package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
)

// abortOnCrash makes a crash of the program end it by SIGABRT, which every supervisor tells from an
// exit code. Go's runtime would exit with 2, which is that of wrong settings: a service is not
// started again then. What is in the memory is not dumped: that may be secret.
func abortOnCrash() {
	debug.SetTraceback("crash")
	forbidDump()
}

// checkDescriptors compares how many files this process may have open with what a crawl needs. It
// warns where connections will be given up early, and fails where workers would have to wait for one
// another.
func checkDescriptors(limit int, o *crawl.Options, warn func(text string)) error {
	least, full := o.Descriptors()
	may := fmt.Sprintf("this process may have %d files and connections open, and %d workers", limit, o.Workers)
	raise := fmt.Sprintf("raise the limit (ulimit -n %d, or LimitNOFILE=%d of a service)", full, full)
	switch {
	case limit < least:
		return exit(exitUsage, fmt.Errorf("%s need %d at least: %s, or lower crawl.workers", may, least, raise))
	case limit < full:
		warn(fmt.Sprintf("%s may take %d: fewer connections are kept between requests; %s", may, full, raise))
	}
	return nil
}

// sameWish is how soon after the first signal another one is the same wish: GNU timeout, for one, signals the process and then its group.
const sameWish = time.Second

// interruptible returns a context that the first SIGINT or SIGTERM ends; another one, a second later or more, ends the process at once, which
// loses nothing that was committed. stop gives the signals back their usual meaning.
func interruptible(parent context.Context, say io.Writer, grace time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var listening sync.WaitGroup
	done := make(chan struct{})
	listening.Go(func() {
		for first := (time.Time{}); ; {
			select {
			case <-done:
				return
			case <-signals:
			}
			now := time.Now()
			switch {
			case first.IsZero():
				first = now
			case now.Sub(first) < sameWish:
				continue
			default:
				fmt.Fprintln(say, "amble: stopped at once; what was committed is safe, and the next run makes up for the rest")
				os.Exit(exitInterrupted)
			}
			fmt.Fprintf(say, "amble: stopping; requests in flight have %s to end. A second signal stops at once\n", span(grace))
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
		cancel()
	}
}

// untilInterrupted returns a context that the first SIGINT or SIGTERM ends, for commands that say then what they did. A second later they have
// their usual meaning.
func untilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameWish, stop) })
	return ctx, stop
}

// untilDone reads until its context ends, also where a read waits: that one goes on by itself.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read is part of io.Reader.
func (u *untilDone) Read(piece []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		piece []byte
		err   error
	}
	done := make(chan result, 1)
	go func() {
		own := make([]byte, len(piece))
		n, err := u.r.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case r := <-done:
		return copy(piece, r.piece), r.err
	case <-u.ctx.Done():
		return 0, u.ctx.Err()
	}
}

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
