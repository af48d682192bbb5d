package crawlcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// Command is a crawler's command, and the bounds of its run.
type Command struct {
	Args     []string // with {seed}, {seeds}, {seedfile}, {resolver}, {proxy} or {ca}
	Settings string
	Proxy    bool // the environment of the command names the proxy of the web
	HTTPS    bool // the environment of the command names the certificate of the web's authority
	Kill     bool
	Timeout  time.Duration
	Quiet    time.Duration // the run ends if there is no request for so long
	Dir      string        // for files that the command is given
	Output   io.Writer     // of the command: what it prints
	Progress func(string)  // what the run does, once every few seconds
}

// ErrNotStarted is the error of a command that could not be run, or made no request.
var ErrNotStarted = errors.New("the crawler did not run")

// The times of a run.
const (
	look     = 100 * time.Millisecond
	tell     = 5 * time.Second
	endGrace = 5 * time.Second // from SIGTERM to SIGKILL
)

// Run runs a crawler's command until it ends, is quiet, or takes too long.
func (l *Lab) Run(ctx context.Context, c Command) (Run, error) {
	args, err := l.expand(c)
	if err != nil {
		return Run{}, err
	}
	r := Run{Command: c.Args, Settings: c.Settings}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	for {
		r.Starts = append(r.Starts, time.Now())
		p, err := l.start(c, args)
		if err != nil {
			return r, fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
		killed := l.watch(ctx, c, p, &r)
		p.end(killed)
		if !killed {
			break
		}
		c.Kill = false
	}
	r.End = time.Now()
	if l.Web.Served() == 0 {
		return r, fmt.Errorf("%w: it made no request, and ended: %s", ErrNotStarted, r.Ended)
	}
	return r, nil
}

// expand fills in the placeholders of the command.
func (l *Lab) expand(c Command) (args []string, err error) {
	file := filepath.Join(c.Dir, "seeds.txt")
	if err := os.WriteFile(file, []byte(strings.Join(l.Homes(), "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("crawlcheck: write the list of seeds: %w", err)
	}
	if err := os.WriteFile(c.authority(), l.authority.PEM(), 0o600); err != nil {
		return nil, fmt.Errorf("crawlcheck: write the certificate of the authority: %w", err)
	}
	seeded := false
	for _, arg := range c.Args {
		if arg == "{seeds}" {
			args, seeded = append(args, l.Homes()...), true
			continue
		}
		filled := strings.NewReplacer("{seed}", l.Start(), "{seedfile}", file).Replace(arg)
		seeded = seeded || filled != arg
		args = append(args, strings.NewReplacer("{resolver}", l.Web.ResolverAddr(), "{proxy}", l.Web.Proxy(), "{dir}",
			c.Dir, "{ca}", c.authority()).Replace(filled))
	}
	if !seeded {
		return nil, errors.New("the command has none of {seed}, {seeds} and {seedfile}: " +
			"the crawler would not know where to begin")
	}
	return args, nil
}

// authority is the file with the certificate of the web's authority.
func (c *Command) authority() string { return filepath.Join(c.Dir, "ca.pem") }

// process is a crawler that runs.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // is closed when it has ended
}

func (l *Lab) start(c Command, args []string) (*process, error) {
	p := &process{command: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = c.Output, c.Output
	p.command.WaitDelay = endGrace
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.Env = os.Environ()
	if c.HTTPS { // for Go and OpenSSL, Python, curl and Node.js
		for _, name := range []string{
			"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
		} {
			p.command.Env = append(p.command.Env, name+"="+c.authority())
		}
	}
	if c.Proxy {
		for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
			p.command.Env = append(p.command.Env, name+"="+l.Web.Proxy())
		}
		p.command.Env = append(p.command.Env, "NO_PROXY=", "no_proxy=")
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // its state says it
	}()
	return p, nil
}

// end ends the process and all that it has started: at once, or after it had time to end by itself.
func (p *process) end(atOnce bool) {
	group := -p.command.Process.Pid
	if !atOnce {
		_ = syscall.Kill(group, syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(endGrace):
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-p.ended
}

// watch waits for the end of a run, or for the time to kill the crawler.
func (l *Lab) watch(ctx context.Context, c Command, p *process, r *Run) (kill bool) {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	served, last, told := l.Web.Served(), time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			r.Ended = "the time was over"
			return false
		case <-p.ended:
			r.Exited, r.Ended = true, "the crawler ended: "+p.command.ProcessState.String()
			return false
		case <-ticks.C:
		}
		now := time.Now()
		if n := l.Web.Served(); n != served {
			served, last = n, now
		}
		switch {
		case c.Kill && l.KillTime():
			return true
		case served > 0 && now.Sub(last) > c.Quiet && !l.busy():
			r.Quiet, r.Ended = true, fmt.Sprintf("there was no request for %s", c.Quiet)
			return false
		case now.Sub(told) > tell:
			told = now
			c.Progress(l.progress(now.Sub(r.Starts[0]), c.Timeout))
		}
	}
}

// busy reports whether a response is still being sent.
func (l *Lab) busy() bool {
	log := l.Web.Requests()
	return slices.ContainsFunc(log[max(0, len(log)-100):], func(q testweb.Request) bool { return !q.Done })
}

// progress says how far a run is.
func (l *Lab) progress(took, of time.Duration) string {
	unseen, stations := l.Unseen()
	text := fmt.Sprintf("%3.0f s of %.0f: %s, %d of %d stations seen", took.Seconds(), of.Seconds(),
		plural(int(l.Web.Served()), "request"), stations-len(unseen), stations)
	if len(unseen) > 0 {
		text += ", not yet: " + strings.Join(unseen[:min(3, len(unseen))], ", ")
	}
	return text
}
