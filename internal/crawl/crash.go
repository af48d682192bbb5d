package crawl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// crashed makes the result of a lease whose work ended in a panic. Links found so far are dropped;
// what the request says about the host counts.
func (w *worker) crashed(ctx context.Context, res *result, cause any, stack []byte) {
	l := &res.lease
	w.tally.Crash()
	w.keepCrash(crash{url: l.URL.String(), host: l.HostName, response: res.response, cause: cause, stack: stack})
	if res.item != nil {
		if err := res.item.Close(); err != nil {
			w.log.Debug("cannot close what was not written", "error", err)
		}
	}
	before := res.findings
	res.findings = findings{}
	switch l.Kind {
	case frontier.Robots:
		res.robots.Report = w.crashReport(res, before.robots.Report)
		w.holdRobots(res)
	case frontier.Match:
		res.match = frontier.MatchReport{Crashed: true, End: w.o.Now()}
	case frontier.Page:
		res.page.Report = w.crashReport(res, before.page.Report)
		w.endCrashed(ctx, res, cause)
	}
}

// crashReport returns the report of a request whose work ended in a panic. If the fetcher itself
// panicked, the report assumes the worst: the request was sent and the server broke it off.
func (w *worker) crashReport(res *result, known frontier.Report) frontier.Report {
	if known.Sent {
		return known
	}
	now, began := w.o.Now(), res.lease.At
	res.request = failureRecord(&res.lease, &fetch.Error{Kind: fetch.KindUnknown, Sent: true, Start: began, End: now})
	w.tally.LostRequest()
	return frontier.Report{Sent: true, End: now, Duration: now.Sub(began), Signal: politeness.SignalAborted}
}

// holdRobots holds the origin of a robots.txt that cannot be read without a panic: it counts as
// unreachable.
func (w *worker) holdRobots(res *result) {
	res.robots.Record = w.o.crashedRobots(&res.lease.Robots.Previous, res.lease.URL, res.robots.End)
	res.robots.Rules = res.robots.Record.Rules(w.o.Frontier.Tokens...)
}

// crashedRobots returns the record of a robots.txt whose work ended in a panic. The copy from
// before is dropped, because it may be the cause.
func (o *Options) crashedRobots(before *robots.Record, u weburl.URL, now time.Time) robots.Record {
	record, _ := o.Frontier.Robots.Next(
		robots.Record{FirstUnreachable: before.FirstUnreachable, Failures: before.Failures},
		robots.Outcome{URL: u.String(), Failure: robots.FailureCrash, Jitter: o.Frontier.Jitter()}, now)
	return record
}

// endCrashed ends the URL of a page. The response is archived unless the archive is what panics.
func (w *worker) endCrashed(ctx context.Context, res *result, cause any) {
	l := &res.lease
	res.page.Outcome = storage.Outcome{State: storage.Failed, Reason: storage.ReasonCrash}
	page := archive.Page{
		URL: l.URL.String(), Depth: int(l.Head.Depth),
		Attempts: int(l.Head.Last.Attempts) + 1, FetchedAt: res.request.Start,
		Duration: res.page.Duration, Reason: inspect.ReasonName(storage.ReasonCrash),
		Error: fmt.Sprintf("amble failed: %v", cause),
	}
	if res.response != nil {
		page.Status, res.page.Outcome.Status = res.response.Status, uint16(res.response.Status)
	}
	if !w.outputCrash(ctx, res, page, res.response) {
		w.outputCrash(ctx, res, page, nil)
	}
}

// outputCrash encodes the output of a crashed page; false if that panics.
func (w *worker) outputCrash(ctx context.Context, res *result, page archive.Page, resp *fetch.Response) (done bool) {
	defer func() {
		if cause := recover(); cause != nil {
			w.log.Debug("cannot encode the output of a crashed URL", "url", page.URL, "panic", fmt.Sprint(cause))
			res.visit, res.item, res.payload = archive.Visit{}, nil, nil
		}
	}()
	w.output(ctx, res, &page, resp, nil)
	return true
}

// CrashDir is the name of the directory under the data directory that holds the responses at which
// amble panicked.
const CrashDir = "crashes"

const (
	// maxCrashFiles and maxCrashBytes bound the directory; maxCrashBody is how much of a body is
	// kept.
	maxCrashFiles, maxCrashBytes, maxCrashBody = 100, 64 << 20, 8 << 20
	// maxCrashStack bounds a stack in the log, in bytes; maxCrashStacks the number of different
	// stacks.
	maxCrashStack, maxCrashStacks = 16 << 10, 32
)

// crashes keeps the responses at which amble panicked. It is safe for concurrent use.
type crashes struct {
	dir     string
	version string

	mu     sync.Mutex
	stacks map[[16]uintptr]bool // the code locations whose stack was logged
}

// crash is a panic, and what it happened with.
type crash struct {
	url, host string          // url is empty for the lookup of a name
	response  *fetch.Response // nil: there was none
	cause     any
	stack     []byte
}

// keepCrash records a panic: its stack in the log, once for each code location that panics, and the
// response in a file.
func (ar *archiving) keepCrash(x crash) {
	var at [16]uintptr
	runtime.Callers(4, at[:]) // skips this function, its caller, the function that recovers, and the runtime
	path, err := ar.crashes.write(x, ar.o.Now())
	kept := path
	if err != nil {
		kept = "nothing: " + err.Error()
	}
	what := "amble failed at a URL"
	if !ar.crashes.isNew(at) {
		ar.log.Debug(what, "url", x.url, "host", x.host, "panic", fmt.Sprint(x.cause), "kept", kept)
		return
	}
	ar.log.Error(what+"; the crawl goes on without it. This is a bug: please report it with the file",
		"url", x.url, "host", x.host, "panic", fmt.Sprint(x.cause), "kept", kept,
		"stack", string(x.stack[:min(len(x.stack), maxCrashStack)]))
}

// isNew reports whether at has not panicked before.
func (c *crashes) isNew(at [16]uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks[at] || len(c.stacks) >= maxCrashStacks {
		return false
	}
	if c.stacks == nil {
		c.stacks = make(map[[16]uintptr]bool)
	}
	c.stacks[at] = true
	return true
}

// write stores a panic and its response in a file of their own, while there is room.
func (c *crashes) write(x crash, now time.Time) (path string, err error) {
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
	size := int64(len(x.stack))
	if x.response != nil {
		size += min(x.response.Body.Size(), maxCrashBody)
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
	fmt.Fprintf(f, "amble %s, %s %s/%s\nurl: %s\nhost: %s\ntime: %s\npanic: %v\n\n%s", c.version, runtime.Version(),
		runtime.GOOS, runtime.GOARCH, x.url, x.host, now.UTC().Format(time.RFC3339), x.cause, x.stack)
	return f.Name(), writeAnswer(f, x.response)
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
