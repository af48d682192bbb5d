package fetch

import (
	"errors"
	"syscall"
)

// errDescriptors says which resource is missing when no file can be opened.
var errDescriptors = errors.New("this process has as many files and connections open as it may: " +
	"raise the limit (ulimit -n, or LimitNOFILE= of a service), or lower crawl.workers")

// OutOfDescriptors reports whether err means that this process, or the whole machine, has as many
// files open as it may.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// CloseIdle closes the idle connections and reports whether there were any.
func (c *Client) CloseIdle() bool { return c.pool.closeIdle() }
