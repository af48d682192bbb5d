package hostsort

import (
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// Options bound what all sorters of a Workspace hold together.
type Options struct {
	Memory int64 // bytes of records in memory
	Disk   int64 // bytes in files
	// Check returns an error if nothing more may be written to the disk, nil if it may. It may be
	// nil.
	Check func() error
}

// DefaultOptions returns 64 MiB of memory and 4 GiB of disk space.
func DefaultOptions() Options { return Options{Memory: 64 << 20, Disk: 4 << 30} }

// Workspace is the memory and the disk space of sorters. It is safe for concurrent use.
type Workspace struct {
	pool         *spool.Pool
	o            Options
	memory, disk budget
}

// NewWorkspace returns a Workspace whose files are in a pool.
func NewWorkspace(pool *spool.Pool, o Options) *Workspace {
	return &Workspace{pool: pool, o: o, memory: budget{most: o.Memory}, disk: budget{most: o.Disk}}
}

// Held returns how many bytes of memory and disk space are reserved.
func (r *Workspace) Held() (memory, disk int64) { return r.memory.held.Load(), r.disk.held.Load() }

// mayWrite reports whether the disk has room.
func (r *Workspace) mayWrite() bool { return r.o.Check == nil || r.o.Check() == nil }

// budget is a number of bytes that several sorters share.
type budget struct {
	most int64
	held atomic.Int64
}

// take reserves n bytes. It returns false if they are not available.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) > b.most {
		b.held.Add(-n)
		return false
	}
	return true
}

func (b *budget) release(n int64) { b.held.Add(-n) }
