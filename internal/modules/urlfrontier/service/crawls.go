//go:build !core

package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Crawls are the crawls of the process, by their ids. Its methods are called by many goroutines at
// once.
type Crawls interface {
	// Use returns a crawl, which stays open until release is called. create makes one that does not
	// exist; without it the error is ErrNoCrawl. ErrCrawlID: no crawl can have that id.
	Use(ctx context.Context, id string, create bool) (c Crawl, release func(), err error)
	// IDs returns the ids of all crawls, sorted.
	IDs(ctx context.Context) ([]string, error)
	// Delete deletes a crawl, and returns how many URLs it had. The error is ErrNoCrawl for one that
	// does not exist.
	Delete(ctx context.Context, id string) (urls uint64, err error)
	// SetDefaultDelay sets the delay of all queues of all crawls, also of later ones, that have none of
	// their own.
	SetDefaultDelay(ctx context.Context, delay time.Duration) error
}

// Crawl is what the service needs of a crawl. *crawl.Engine has these methods and documents them.
type Crawl interface {
	Put(ctx context.Context, puts []crawl.Put) ([]crawl.PutResult, error)
	Lease(ctx context.Context, r remote.Request) ([]remote.Lease, error)
	Report(ctx context.Context, reports []remote.Report) ([]remote.Result, error)
	Delete(ctx context.Context, d crawl.Deletion) (urls uint64, err error)

	SetQueue(ctx context.Context, host string, change func(*crawl.QueueSettings)) error
	SetActive(ctx context.Context, on bool) error
	Active() bool

	QueueStats(ctx context.Context, host string) (crawl.QueueStats, error)
	ListQueues(ctx context.Context, q crawl.QueueQuery) (keys []string, err error)
	HostsOfQueue(key, after string, most int) (hosts []string, err error)
	URLStatus(ctx context.Context, u weburl.URL) (crawl.URLStatus, error)
	ListURLs(ctx context.Context, q crawl.URLQuery, yield func(weburl.URL, crawl.URLStatus) error) error
	CountURLs(ctx context.Context, q crawl.URLQuery) (uint64, error)
}

// Errors of Crawls.
var (
	ErrNoCrawl = errors.New("there is no such crawl")
	ErrCrawlID = errors.New("no crawl can have that id")
)

// crawlID returns the id of a crawl as it is kept: that of the default crawl for blank text.
func crawlID(id string) string {
	if strings.TrimSpace(id) == "" {
		return urlfrontier.DefaultCrawl
	}
	return id
}

// rpcError gives an error of a crawl the code that a client understands.
func rpcError(err error) error {
	var already *connect.Error
	switch {
	case err == nil || errors.As(err, &already):
		return err
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, ErrNoCrawl), errors.Is(err, inspect.ErrUnknown):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, ErrCrawlID):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, remote.ErrCutOff):
		return connect.NewError(connect.CodePermissionDenied, err)
	case errors.Is(err, crawl.ErrNotRunning):
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}
