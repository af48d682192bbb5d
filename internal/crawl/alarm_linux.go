package crawl

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// kernelAlarm is an alarm by a timer of the kernel that is read like a connection, because a
// time.Timer is late: while the garbage collector marks, idle processors help it and stop for
// goroutines and connections that are ready, but not for timers, which takes 10 ms with a heap of
// 50 MB. And a process that is otherwise idle sleeps for it in whole milliseconds.
type kernelAlarm struct {
	ringing chan struct{}
	file    *os.File
	fd      int       // of file
	at      time.Time // zero: it is not set
}

// newAlarm makes an alarm that is not set.
func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", os.NewSyscallError("timerfd_create", err))
	}
	return &kernelAlarm{ringing: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "timer"), fd: fd}, nil
}

func (a *kernelAlarm) watch() {
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return
		}
		select {
		case a.ringing <- struct{}{}:
		default: // one ring is as good as two
		}
	}
}

func (a *kernelAlarm) rings() <-chan struct{} { return a.ringing }

func (a *kernelAlarm) set(at time.Time) error {
	if at.Equal(a.at) {
		return nil
	}
	a.at = at
	return a.settle(max(time.Until(at), 1)) // 0 would stop it
}

func (a *kernelAlarm) rang() { a.at = time.Time{} }

func (a *kernelAlarm) stop() error {
	if a.at.IsZero() {
		return nil
	}
	a.at = time.Time{}
	return a.settle(0)
}

func (a *kernelAlarm) settle(wait time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(a.fd, 0, &spec, nil))
}

func (a *kernelAlarm) close() error { return a.file.Close() }
