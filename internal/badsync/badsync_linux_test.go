package badsync

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const childVariable = "AMBLE_BADSYNC_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

// child syncs a file four times. The third sync has to fail.
func child(path string) int {
	f, err := os.Create(path)
	if err != nil {
		return 1
	}
	if err := Install(func(c Call, n int) bool {
		return c == Fdatasync && n == 3 ||
			c == Fsync && n == 2
	}); err != nil {
		return 2
	}
	for n := 1; n <= 4; n++ {
		err := syscall.Fdatasync(int(f.Fd()))
		if want := n == 3; errors.Is(err, syscall.EIO) != want || !want && err != nil {
			return 10 + n
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
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
