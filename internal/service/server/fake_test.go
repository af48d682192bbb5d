package server

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// fake is a server that answers in place of a crawl.
type fake struct {
	address string
	http    *http.Server
	serving sync.WaitGroup
}

func startFake(h http.Handler) (*fake, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &fake{address: listener.Addr().String(), http: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}}
	f.serving.Go(func() { _ = f.http.Serve(listener) })
	return f, nil
}

func (f *fake) close() {
	_ = f.http.Close()
	f.serving.Wait()
}

// The rest of a crawl that never moves: it has nothing to look at, and takes nothing.

func (fixedCrawl) Observe(crawl.Observer) {}

func (fixedCrawl) View() *inspect.View { return nil }

func (fixedCrawl) NewImport(crawl.ImportOptions) (crawl.Import, error) {
	return nil, crawl.ErrNotRunning
}

func (fixedCrawl) Backup(context.Context, io.Writer, func(int64)) (int64, error) {
	return 0, crawl.ErrNotRunning
}
func (fixedCrawl) Retry(context.Context, sweep.Selection, func(sweep.Retried) error) (sweep.Retried, error) {
	return sweep.Retried{}, crawl.ErrNotRunning
}

func (fixedCrawl) CountRetries(context.Context, sweep.Selection, func(sweep.Retried) error) (sweep.Retried, error) {
	return sweep.Retried{}, crawl.ErrNotRunning
}

func (fixedCrawl) Visit(context.Context, *crawl.Visit) error { return crawl.ErrNotRunning }

func (fixedCrawl) Pause(context.Context) error { return crawl.ErrNotRunning }

func (fixedCrawl) Resume(context.Context) error { return crawl.ErrNotRunning }

func (fixedCrawl) Drain(context.Context, bool) error { return crawl.ErrNotRunning }

func (fixedCrawl) Stop(context.Context) error { return crawl.ErrNotRunning }

func (fixedCrawl) Control(context.Context, string, frontier.Command) error {
	return crawl.ErrNotRunning
}

func (fixedCrawl) AddOptOut(context.Context, optout.Entry) error { return crawl.ErrNotRunning }

func (fixedCrawl) RemoveOptOut(context.Context, optout.Scope, string) error {
	return crawl.ErrNotRunning
}

func (fixedCrawl) ChangeSeeds(context.Context, crawl.SeedWish) (crawl.SeedCounts, error) {
	return crawl.SeedCounts{}, crawl.ErrNotRunning
}

func (fixedCrawl) Seeds() ([]crawl.Seed, error) { return nil, crawl.ErrNotRunning }

func (fixedCrawl) OptOuts() ([]crawl.OptOut, error) { return nil, crawl.ErrNotRunning }

func (fixedCrawl) Delete(context.Context, crawl.Deletion) (uint64, error) {
	return 0, crawl.ErrNotRunning
}

func (fixedCrawl) Lease(context.Context, remote.Request) ([]remote.Lease, error) {
	return nil, crawl.ErrNotRunning
}

func (fixedCrawl) Extend(context.Context, string, []remote.ID, time.Duration) ([]time.Time, error) {
	return nil, crawl.ErrNotRunning
}

func (fixedCrawl) Report(context.Context, []remote.Report) ([]remote.Result, error) {
	return nil, crawl.ErrNotRunning
}

func (fixedCrawl) Fetchers(context.Context) ([]remote.Fetcher, error) {
	return nil, crawl.ErrNotRunning
}

func (fixedCrawl) CutOff(context.Context, string) error { return crawl.ErrNotRunning }

func (fixedCrawl) Admit(context.Context, string) error { return crawl.ErrNotRunning }

func (fixedCrawl) Check(context.Context, []weburl.URL, bool) ([]crawl.URLCheck, error) {
	return nil, crawl.ErrNotRunning
}

func (fixedCrawl) DropQueue(context.Context, string) (int, error) { return 0, crawl.ErrNotRunning }
