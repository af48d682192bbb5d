//go:build real

package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a program that the tests started. It dies with the test: at the end of it, and when the test binary dies.
type process struct {
	name   string
	id     int
	output lockedBuffer
	ended  chan struct{}
	err    error // how it ended; to be read when ended is closed
}

// start starts a program. Its last signal, should it still run at the end of the test, is SIGTERM, then SIGKILL.
func start(t *testing.T, name string, arguments ...string) *process {
	t.Helper()
	p := &process{name: name, ended: make(chan struct{})}
	command := exec.Command(name, arguments...)
	command.Stdout, command.Stderr = &p.output, &p.output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig comes when the thread ends, so this one stays
		defer runtime.UnlockOSThread()
		err := command.Start()
		if err == nil {
			p.id = command.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if p.running() {
				p.signal(signal)
				p.wait(5 * time.Second)
			}
		}
	})
	return p
}

// signal sends a signal, unless the process has ended.
func (p *process) signal(s syscall.Signal) {
	if p.running() {
		syscall.Kill(p.id, s)
	}
}

// running reports whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wait waits for the end of the process and returns how it ended: nil is exit code 0.
func (p *process) wait(atMost time.Duration) error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(atMost):
		return fmt.Errorf("%s still runs after %s", p.name, atMost)
	}
}

// command runs a program to its end and returns what it wrote.
func command(t *testing.T, atMost time.Duration, name string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	c := exec.CommandContext(ctx, name, arguments...)
	c.WaitDelay = time.Second
	output, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", c, err)
	}
	return string(output), err
}

// lockedBuffer is a buffer that is written by one goroutine while another one reads it.
type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}
