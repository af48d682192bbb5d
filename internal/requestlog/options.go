package requestlog

import (
	"fmt"
	"time"
)

// Options bound the log.
type Options struct {
	MaxSize int64         // bytes of all files; the oldest go first. 0: no log is kept
	Keep    time.Duration // a file that was last written longer ago goes; 0: none does for its age
}

// DefaultOptions keep about fifteen million requests, for ninety days.
func DefaultOptions() Options { return Options{MaxSize: 1 << 30, Keep: 90 * 24 * time.Hour} }

// MinSize is the least MaxSize but 0.
const MinSize = 1 << 20

// Validate says which option cannot be used.
func (o Options) Validate() error {
	if o.MaxSize != 0 && o.MaxSize < MinSize {
		return fmt.Errorf("request log: MaxSize is %d, should be 0 or at least %d", o.MaxSize, MinSize)
	}
	if o.Keep < 0 {
		return fmt.Errorf("request log: Keep is %v, should not be negative", o.Keep)
	}
	return nil
}

// parts is how many files a full log has at least, so that what goes is a small part of it.
const parts = 16

// maxFile bounds a file, and with it what a reader keeps in memory.
const maxFile = 64 << 20

// fileBytes is from which length on a file is not gone on with.
func (o Options) fileBytes() int64 { return min(o.MaxSize/parts, maxFile) }

// fileAge is from which age on a file is not gone on with.
func (o Options) fileAge() time.Duration {
	if o.Keep == 0 {
		return 1<<63 - 1
	}
	return max(o.Keep/parts, time.Minute)
}
