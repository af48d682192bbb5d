// Package crashes keeps what was at hand when the work of a URL ended in a panic, in files of bounded number and size.
package crashes

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

const (
	// maxFiles and maxBytes bound the directory; maxBody is how much of a body is
	// kept.
	maxFiles, maxBytes, maxBody = 100, 64 << 20, 8 << 20
	// MaxStack bounds a stack in the log, in bytes; maxStacks the number of different stacks.
	MaxStack, maxStacks = 16 << 10, 32
)

// Files keeps the responses at which amble panicked. It is safe for concurrent use.
type Files struct {
	Dir     string
	Version string // of the program

	mu     sync.Mutex
	stacks map[[16]uintptr]bool // the code locations whose stack was logged
}

// Crash is a panic, and what it happened with.
type Crash struct {
	URL, Host string          // URL is empty for the lookup of a name
	Response  *fetch.Response // nil: there was none
	Cause     any
	Stack     []byte
}

// IsNew reports whether at has not panicked before.
func (c *Files) IsNew(at [16]uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks[at] || len(c.stacks) >= maxStacks {
		return false
	}
	if c.stacks == nil {
		c.stacks = make(map[[16]uintptr]bool)
	}
	c.stacks[at] = true
	return true
}

// Write stores a panic and its response in a file of their own, while there is room.
func (c *Files) Write(x Crash, now time.Time) (path string, err error) {
	defer func() {
		if again := recover(); again != nil {
			err = fmt.Errorf("what came cannot be read either: %v", again)
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return "", err
	}
	size := int64(len(x.Stack))
	if x.Response != nil {
		size += min(x.Response.Body.Size(), maxBody)
	}
	if err := c.room(size); err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(c.Dir, now.UTC().Format("20060102-150405.000000000")+".crash"),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fmt.Fprintf(f, "amble %s, %s %s/%s\nurl: %s\nhost: %s\ntime: %s\npanic: %v\n\n%s", c.Version, runtime.Version(),
		runtime.GOOS, runtime.GOARCH, x.URL, x.Host, now.UTC().Format(time.RFC3339), x.Cause, x.Stack)
	return f.Name(), writeAnswer(f, x.Response)
}

// room returns an error if the directory has no room for a file of size bytes.
func (c *Files) room(size int64) error {
	files, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size += info.Size()
		}
	}
	if len(files) >= maxFiles || size > maxBytes {
		return fmt.Errorf("%s has %d files already; %d or %d MiB are the most", c.Dir, len(files), maxFiles,
			maxBytes>>20)
	}
	return nil
}

// writeAnswer writes a response with its body as decoded.
func writeAnswer(w io.Writer, resp *fetch.Response) error {
	if resp == nil {
		return nil
	}
	head := bytes.NewBufferString(fmt.Sprintf("\n%s %d\r\n", resp.Proto, resp.Status))
	if err := resp.Header.Write(head); err != nil {
		return err
	}
	head.WriteString("\r\n")
	if _, err := w.Write(head.Bytes()); err != nil {
		return err
	}
	_, err := io.CopyN(w, resp.Body.NewReader(), min(resp.Body.Size(), maxBody))
	return err
}

// Robots returns the record of a robots.txt whose work ended in a panic: it counts as unreachable. The copy from before
// is dropped, because it may be the cause.
func Robots(o *frontier.Options, before *robots.Record, u weburl.URL, now time.Time) robots.Record {
	record, _ := o.Robots.Next(
		robots.Record{FirstUnreachable: before.FirstUnreachable, Failures: before.Failures},
		robots.Outcome{URL: u.String(), Failure: robots.FailureCrash, Jitter: o.Jitter()}, now)
	return record
}
