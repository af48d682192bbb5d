//go:build unix

package main

import (
	"io/fs"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestModes: what a crawl and the commands write is for its owner and its group alone, and for
// fewer where the umask says so. What is there keeps its mode.
func TestModes(t *testing.T) {
	t.Parallel()
	for umask, masked := range map[string]fs.FileMode{"000": 0, "077": 0o077} {
		t.Run(umask, func(t *testing.T) {
			t.Parallel()
			leave := make(chan struct{})
			site := chain("a.test", 3)
			site.Handler.(testweb.Routes)["/1"] = waitFor(leave)
			p := newProgram(t, []testweb.Site{site}, map[string]map[string]any{
				"output": {"format": []string{"jsonl", "warc", "links", "text"}}, "server": {"listen": "127.0.0.1:0"},
			})
			run := p.underUmask(umask, "run")
			must.Do(t, run.Start())
			testkit.Until(t, "the files with the address and of the output", func() bool {
				_, err := os.Stat(p.path("data", server.AddressFile))
				open, _ := filepath.Glob(p.path("data", "output", "*.open"))
				return err == nil && len(open) > 4
			})
			p.checkModes("data", masked)
			close(leave)
			must.Do(t, run.Wait())
			for _, command := range [][]string{{"db", "backup", "copy"}, {"export", "-o", "exported.jsonl"}} {
				out, err := p.underUmask(umask, command...).CombinedOutput()
				must.True(t, err == nil, "%v\n%s", err, out)
			}
			p.checkModes("data", masked)
			p.checkModes("copy", masked)
			p.checkModes("exported.jsonl", masked)

			database := p.path("data", storage.FileName)
			must.Do(t, os.Chmod(database, 0o666))
			for _, command := range [][]string{{"db", "compact"}, {"run"}} {
				out, err := p.underUmask(umask, command...).CombinedOutput()
				must.True(t, err == nil, "%v\n%s", err, out)
			}
			if info, err := os.Stat(database); err != nil || info.Mode().Perm() != 0o666 {
				t.Errorf("the database had mode 666 and has %v (%v)", info.Mode(), err)
			}
		})
	}
}

// underUmask is amble with the masked modes of whoever starts it.
func (p *program) underUmask(umask string, arguments ...string) *exec.Cmd {
	p.t.Helper()
	c := p.amble(arguments...)
	binary := p.path("amble") // its name makes the test binary the program
	if err := os.Symlink(c.Path, binary); err != nil && !os.IsExist(err) {
		p.t.Fatal(err)
	}
	c.Args = append([]string{"sh", "-c", "umask " + umask + `; exec "$0" "$@"`, binary}, c.Args[1:]...)
	c.Path = "/bin/sh"
	return c
}

// checkModes holds that all below a path is for its owner, and its group to be read.
func (p *program) checkModes(path string, masked fs.FileMode) {
	p.t.Helper()
	err := filepath.WalkDir(p.path(path), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o640)
		if entry.IsDir() {
			want = 0o750
		}
		if got := info.Mode().Perm(); got != want&^masked {
			p.t.Errorf("%s has mode %o, want %o", name, got, want&^masked)
		}
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
}

// supervised is the program as systemd runs it.
type supervised struct {
	t        *testing.T
	command  *exec.Cmd
	listener *net.UnixConn
	heard    []string // messages to the supervisor
	messages strings.Builder
}

// supervise runs the program with a data directory of its own.
func supervise(t *testing.T, arguments ...string) *supervised {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	listener := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))(t)
	t.Cleanup(func() { listener.Close() })
	s := &supervised{t: t, listener: listener}
	s.command = exec.Command(os.Args[0],
		append([]string{"run", "--set", "data_dir=" + filepath.Join(dir, "data"), "--set",
			"fetch.contact=bot@one.example", "--set", "fetch.allow_private=true",
			"--set", "crawl.exit_when_done=false", "--set", "server.listen="}, arguments...)...)
	s.command.Args[0], s.command.Dir = "amble", dir
	s.command.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "GORACE=atexit_sleep_ms=0", "NOTIFY_SOCKET="+
		socket, "WATCHDOG_USEC=2000000")
	s.command.Stderr = &s.messages
	must.Do(t, s.command.Start())
	t.Cleanup(func() { _ = s.command.Process.Kill() })
	return s
}

// wait waits for a message.
func (s *supervised) wait(want string) {
	s.t.Helper()
	_ = s.listener.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 1<<10)
	for {
		n, err := s.listener.Read(b)
		if err != nil {
			s.t.Fatalf("waiting for %q after %q: %v\n%s", want, s.heard, err, &s.messages)
		}
		s.heard = append(s.heard, string(b[:n]))
		if strings.Contains(s.heard[len(s.heard)-1], want) {
			return
		}
	}
}

// TestRunTellsItsSupervisor: it says when it is ready, that it lives, how it stands, and that it stops.
func TestRunTellsItsSupervisor(t *testing.T) {
	web := httptest.NewServer(newScriptWeb())
	defer web.Close()
	s := supervise(t, web.URL+"/crawl/")
	s.wait("READY=1")
	assert.True(t, len(s.heard) <= 1, "heard %q before it is ready", s.heard)
	s.wait("WATCHDOG=1")
	s.wait("STATUS=running: ")
	s.wait("WATCHDOG=1")
	must.Do(t, s.command.Process.Signal(syscall.SIGTERM))
	s.wait("STOPPING=1")
	err := s.command.Wait()
	assert.True(t, err == nil, "%v\n%s", err, &s.messages)
}

// TestNodeTellsItsSupervisor: a node that waits for the servers of other machines is not ready, and says why.
func TestNodeTellsItsSupervisor(t *testing.T) {
	t.Parallel()
	s := supervise(t, "--set", "cluster.embed.listen=127.0.0.1:0", "--set", "cluster.embed.listen_routes=127.0.0.1:0",
		"--set", "cluster.embed.routes=127.0.0.1:1")
	s.wait("STATUS=waiting for the NATS servers")
	assert.True(t, len(s.heard) <= 1, "heard %q before it waits", s.heard)
}
