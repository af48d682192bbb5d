//go:build unix

package main

import (
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
)

// TestRunTellsItsSupervisor runs the program as systemd does: it says when it is ready, that it lives, how it stands, and that it stops.
func TestRunTellsItsSupervisor(t *testing.T) {
	web := httptest.NewServer(newScriptWeb())
	defer web.Close()
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	command := exec.Command(os.Args[0], "run", "--set", "data_dir="+filepath.Join(dir, "data"), "--set", "fetch.contact=bot@one.example", "--set", "fetch.allow_private=true",
		"--set", "crawl.exit_when_done=false", "--set", "server.listen=", web.URL+"/crawl/")
	command.Args[0], command.Dir = "amble", dir
	command.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "GORACE=atexit_sleep_ms=0", "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=2000000")
	var said strings.Builder
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill() }()
	var heard []string
	wait := func(want string) {
		t.Helper()
		_ = listener.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 1<<10)
		for {
			n, err := listener.Read(b)
			if err != nil {
				t.Fatalf("waiting for %q after %q: %v\n%s", want, heard, err, &said)
			}
			heard = append(heard, string(b[:n]))
			if strings.Contains(heard[len(heard)-1], want) {
				return
			}
		}
	}
	wait("READY=1")
	if len(heard) > 1 {
		t.Errorf("heard %q before it is ready", heard)
	}
	wait("WATCHDOG=1")
	wait("STATUS=running: ")
	wait("WATCHDOG=1")
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait("STOPPING=1")
	if err := command.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
}
