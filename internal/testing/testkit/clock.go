package testkit

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Clock is that of a machine whose wall clock can be set while a process runs. It is safe for concurrent
// use.
type Clock struct{ ahead atomic.Int64 } // seconds

// Set moves the wall clock by whole seconds; the monotonic one goes on as it did.
func (c *Clock) Set(by time.Duration) { c.ahead.Add(int64(by / time.Second)) }

// Now reads both clocks. The time package has no way to move one of them: this relies on its layout.
func (c *Clock) Now() time.Time {
	t := time.Now()
	reading := (*struct {
		wall uint64 // a flag, 33 bits of seconds, 30 bits of nanoseconds
		ext  int64  // monotonic reading
		loc  *time.Location
	})(unsafe.Pointer(&t))
	reading.wall += uint64(c.ahead.Load()) << 30
	return t
}
