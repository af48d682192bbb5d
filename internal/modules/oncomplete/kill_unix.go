//go:build !core && unix

package oncomplete

import (
	"os/exec"
	"syscall"
)

// killAll has the end of its context kill a command with all that it has started.
func killAll(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
