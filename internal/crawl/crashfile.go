package crawl

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
)

// CrashDir is the name of the directory under the data directory that holds the responses at which
// amble panicked.
const CrashDir = "crashes"

const (
	// maxCrashFiles and maxCrashBytes bound the directory; maxCrashBody is how much of a body is
	// kept.
	maxCrashFiles, maxCrashBytes, maxCrashBody = 100, 64 << 20, 8 << 20
	// maxCrashStack bounds a stack in the log, in bytes; maxCrashPlaces the number of different
	// stacks.
	maxCrashStack, maxCrashPlaces = 16 << 10, 32
)

// crashes keeps the responses at which amble panicked. It is safe for concurrent use.
type crashes struct {
	dir     string
	version string

	mu     sync.Mutex
	places map[[16]uintptr]bool // the code locations whose stack was logged
}

// keepCrash records a panic: its stack in the log, once for each code location that panics, and the
// response in a file.
func (r *run) keepCrash(res *result, cause any, stack []byte) {
	var place [16]uintptr
	runtime.Callers(4, place[:]) // skips this function, crashed, the recover in serve, and the runtime
	path, err := r.crashes.write(res, cause, stack, r.now())
	kept := path
	if err != nil {
		kept = "nothing: " + err.Error()
	}
	what, url, host := "amble failed at a URL", res.lease.URL.String(), res.lease.HostName
	if !r.crashes.isNew(place) {
		r.log.Debug(what, "url", url, "host", host, "panic", fmt.Sprint(cause), "kept", kept)
		return
	}
	r.log.Error(what+"; the crawl goes on without it. This is a bug: please report it with the file",
		"url", url, "host", host, "panic", fmt.Sprint(cause), "kept", kept,
		"stack", string(stack[:min(len(stack), maxCrashStack)]))
}

// isNew reports whether place has not panicked before.
func (c *crashes) isNew(place [16]uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places[place] || len(c.places) >= maxCrashPlaces {
		return false
	}
	if c.places == nil {
		c.places = make(map[[16]uintptr]bool)
	}
	c.places[place] = true
	return true
}

// write stores a panic and its response in a file of their own, while there is room.
func (c *crashes) write(res *result, cause any, stack []byte, now time.Time) (path string, err error) {
	defer func() {
		if again := recover(); again != nil {
			err = fmt.Errorf("what came cannot be read either: %v", again)
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.dir, 0o750); err != nil {
		return "", err
	}
	size := int64(len(stack))
	if res.response != nil {
		size += min(res.response.Body.Size(), maxCrashBody)
	}
	if err := c.room(size); err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, now.UTC().Format("20060102-150405.000000000")+".crash"),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fmt.Fprintf(f, "amble %s, %s %s/%s\nurl: %s\ntime: %s\npanic: %v\n\n%s", c.version, runtime.Version(),
		runtime.GOOS, runtime.GOARCH, res.lease.URL, now.UTC().Format(time.RFC3339), cause, stack)
	return f.Name(), writeAnswer(f, res.response)
}

// room returns an error if the directory has no room for a file of size bytes.
func (c *crashes) room(size int64) error {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size += info.Size()
		}
	}
	if len(files) >= maxCrashFiles || size > maxCrashBytes {
		return fmt.Errorf("%s has %d files already; %d or %d MiB are the most", c.dir, len(files), maxCrashFiles,
			maxCrashBytes>>20)
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
	_, err := io.CopyN(w, resp.Body.NewReader(), min(resp.Body.Size(), maxCrashBody))
	return err
}
