package badsync

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

const (
	childVariable = "AMBLE_BADSYNC_CHILD"
	syncs         = 200
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

// child syncs a file while signals interrupt its thread. Only the third and the last sync have to fail.
func child(path string) int {
	f, err := os.Create(path)
	if err != nil {
		return 1
	}
	if err := Install(func(c Call, n int) bool {
		return c == Fdatasync && (n == 3 || n == syncs) ||
			c == Fsync && n == 2
	}); err != nil {
		return 2
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	go func() {
		for unix.Tgkill(os.Getpid(), thread, unix.SIGURG) == nil { // which Go takes for its own, and ignores
			runtime.Gosched()
		}
	}()
	for n := 1; n <= syncs; n++ {
		err := syscall.Fdatasync(int(f.Fd()))
		if want := n == 3 || n == syncs; errors.Is(err, syscall.EIO) != want || !want && err != nil {
			return 4
		}
	}
	if f.Sync() != nil || !errors.Is(f.Sync(), syscall.EIO) || f.Sync() != nil {
		return 3
	}
	return 0
}

func TestInstall(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+filepath.Join(t.TempDir(), "file"))
	out, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() == 2 {
		t.Skip("the system does not let a process filter its own system calls")
	}
	assert.NoError(t, err, out)
}
