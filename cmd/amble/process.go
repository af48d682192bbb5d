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
	"github.com/amble-crawler/amble/internal/node"
	"github.com/amble-crawler/amble/internal/system"
)

// abortOnCrash makes a crash of the program end it by SIGABRT, which every supervisor can tell from
// an exit code. By default Go's runtime exits with 2, the code for wrong settings, after which a
// service is not restarted. Memory may hold secrets, so it is not dumped.
func abortOnCrash() {
	debug.SetTraceback("crash")
	system.ForbidDump()
}

// checkDescriptors compares the limit of open files with the needs of the crawls. It warns if
// connections will be closed early, lowers the number of crawls that may be open to what there is room
// for, and fails if workers would have to wait for each other.
func checkDescriptors(limit int, n *node.Options, warn func(text string)) error {
	o := &n.Crawl
	least, full := o.Descriptors()
	most := n.MaxOpen
	if n.MaxCrawls > 0 {
		n.MaxOpen = max(min(most, (limit-full)/node.CrawlDescriptors), 1)
		least, full = least+node.CrawlDescriptors, full+most*node.CrawlDescriptors
	}
	may := fmt.Sprintf("this process may have %d files and connections open, and %d workers", limit, o.Workers)
	raise := fmt.Sprintf("raise the limit (ulimit -n %d, or LimitNOFILE=%d of a service)", full, full)
	switch {
	case limit < least:
		return exit(exitUsage, fmt.Errorf("%s need %d at least: %s, or lower crawl.workers", may, least, raise))
	case n.MaxOpen < most:
		warn(
			fmt.Sprintf(
				"this process may have %d files and connections open: %s besides DEFAULT may be open at a time, "+
					"and not %d; %s", limit, plural(n.MaxOpen, "crawl"), most, raise))
	case limit < full:
		warn(fmt.Sprintf("%s may take %d: fewer connections are kept between requests; %s", may, full, raise))
	}
	return nil
}

// sameWish is how soon after the first signal another one is taken for the same: GNU timeout, for
// example, signals the process and then its group.
const sameWish = time.Second

// interruptible returns a context that the first SIGINT or SIGTERM ends. Another one, a second
// later or more, ends the process at once, and nothing that was committed is lost. stopping is what the
// first one prints. stop restores the default handling of the signals.
func interruptible(parent context.Context, say io.Writer, stopping string) (ctx context.Context, stop func()) {
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
				fmt.Fprintln(say, "amble: stopped at once; what was committed is safe, and the next run fetches the "+
					"rest")
				os.Exit(exitInterrupted)
			}
			fmt.Fprintln(say, stopping)
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

// untilInterrupted returns a context that the first SIGINT or SIGTERM ends, for commands that
// report their progress then. A second later the signals have their default handling again.
func untilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameWish, stop) })
	return ctx, stop
}

// untilDone reads until its context ends, even while a read blocks: that read goes on in its
// goroutine.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
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

// supervisor is a service manager that wants to know the state of this process: systemd with
// Type=notify. sd_notify(3) describes the messages. A nil supervisor gets none.
type supervisor struct {
	socket   string        // NOTIFY_SOCKET
	watchdog time.Duration // WATCHDOG_USEC: the longest silence before it ends the process; 0: no watchdog
}

// findSupervisor reads the supervisor from the environment. It returns nil if there is none.
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

// notify sends a message. It ignores errors: the crawl does not depend on the supervisor.
func (s *supervisor) notify(message string) {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(message))
}

// waits says what the process waits for before it is ready.
func (s *supervisor) waits(what string) {
	if s != nil {
		s.notify("STATUS=waiting " + what)
	}
}

// vital is what a supervisor wants to know.
type vital struct {
	ready, alive bool
	text         string // the state in a line
}

// vitalOf says that a crawl is alive for as long as its dispatcher is: a dispatcher that hangs is
// detected by the age of its status.
func vitalOf(status func() crawl.Status) func(now time.Time, silence time.Duration) vital {
	return func(now time.Time, silence time.Duration) vital {
		st := status()
		return vital{
			ready: st.State != "opened",
			alive: now.Sub(st.At) < silence || st.State == "stopping" || st.State == "finished",
			text: fmt.Sprintf("%s: %d fetched, %d queued, %.1f pages/s", st.State, st.URLs["fetched"],
				st.URLs["queued"], st.PagesPerSec),
		}
	}
}

// watch reports that the process is ready when it works, and from then on that it is alive. vital is
// given the longest silence that the supervisor allows. end reports that the process stops, and ends the
// watch.
func (s *supervisor) watch(vital func(now time.Time, silence time.Duration) vital) (end func()) {
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
			v := vital(time.Now(), s.watchdog)
			if !ready && v.ready {
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
func (s *supervisor) alive(v vital) string {
	message := "STATUS=" + v.text
	if s.watchdog > 0 && v.alive {
		message += "\nWATCHDOG=1"
	}
	return message
}
