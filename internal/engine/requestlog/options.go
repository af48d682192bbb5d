package requestlog

import (
	"fmt"
	"time"
)

// DirName is the name of the log's directory under the data directory.
const DirName = "requests"

// Options bound the log.
type Options struct {
	MaxSize int64         // of all files; the oldest are deleted first. 0: no log is kept
	Keep    time.Duration // a file that was last written longer ago is deleted; 0: no file is deleted for its age
}

// DefaultOptions returns options that keep about fifteen million requests, for ninety days.
func DefaultOptions() Options { return Options{MaxSize: 1 << 30, Keep: 90 * 24 * time.Hour} }

// MinSize is the least MaxSize other than 0.
const MinSize = 1 << 20

// Validate returns an error for an option that cannot be used.
func (o Options) Validate() error {
	if o.MaxSize != 0 && o.MaxSize < MinSize {
		return fmt.Errorf("request log: MaxSize is %d, should be 0 or at least %d", o.MaxSize, MinSize)
	}
	if o.Keep < 0 {
		return fmt.Errorf("request log: Keep is %v, should not be negative", o.Keep)
	}
	return nil
}
