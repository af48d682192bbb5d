package badsync

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install makes every sync of this process, from now to its end, fail with EIO if fails returns
// true. fails is called once for each sync and for one at a time, with its system call and its number
// among those of this call, from 1. It may not sync itself. Install needs no privileges. It returns an
// error if the system does not allow it.
//
// For each such call, the kernel sends a request over a seccomp listener, and a goroutine of this
// process replies.
func Install(fails func(c Call, n int) bool) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FSYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC |
		unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	install := func(flags uintptr) (listener uintptr, errno syscall.Errno) {
		listener, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
			uintptr(unsafe.Pointer(&program)))
		return listener, errno
	}
	// Without the flag a signal may void a reply that was sent, so that the sync counts twice.
	listener, errno := install(flags | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errno == syscall.EINVAL { // before Linux 5.19
		listener, errno = install(flags)
	}
	if errno != 0 {
		return fmt.Errorf("install a seccomp filter: %w", errno)
	}
	go answer(listener, fails)
	return nil
}

// question is struct seccomp_notif. Only the fields in use have names.
type question struct {
	id     uint64
	thread uint32
	_      uint32
	number int32
	_      [60]byte
}

// reply is struct seccomp_notif_resp.
type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// goOn is SECCOMP_USER_NOTIF_FLAG_CONTINUE: the system call continues.
const goOn = 1

func answer(listener uintptr, fails func(c Call, n int) bool) {
	counts := make(map[Call]int)
	interrupted := make(map[uint32]bool) // whether the sync fails that a thread begins again
	for {
		var q question
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_RECV,
			uintptr(unsafe.Pointer(&q))); errno != 0 {
			continue // the caller was interrupted
		}
		failing, again := interrupted[q.thread]
		if !again {
			c := Fdatasync
			if q.number == unix.SYS_FSYNC {
				c = Fsync
			}
			counts[c]++
			failing = fails(c, counts[c])
		}
		delete(interrupted, q.thread)
		r := reply{id: q.id, flags: goOn}
		if failing {
			r = reply{id: q.id, errno: -int32(syscall.EIO)}
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_SEND,
			uintptr(unsafe.Pointer(&r))); errno != 0 {
			interrupted[q.thread] = failing // by a signal, before the reply
		}
	}
}
