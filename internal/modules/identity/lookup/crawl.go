package lookup

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Crawl is what a look-up needs of the running crawl. Its methods are called by many goroutines at once.
type Crawl interface {
	// Host returns what is known of a host. inspect.ErrUnknown: nothing is.
	Host(ctx context.Context, name string) (inspect.HostStory, error)
	// URL returns what is known of a URL, which may be nothing.
	URL(ctx context.Context, u weburl.URL) (inspect.URLStory, error)
	// Visits calls each for every request to a host since an instant, in the order of the log.
	Visits(ctx context.Context, host string, since time.Time, each func(*Visit) error) error
	// Fetch puts a URL into the queue of its host, also one that failed before.
	Fetch(ctx context.Context, u weburl.URL) error

	OptOuts(ctx context.Context) ([]crawl.OptOut, error)
	AddOptOut(ctx context.Context, e optout.Entry) error
	RemoveOptOut(ctx context.Context, scope optout.Scope, value string) error
	// SetDelay sets the delay of a host in place of the configured one; 0 removes it.
	SetDelay(ctx context.Context, host string, d time.Duration) error
	Close() error
}

// Visit is one request, in the form of the audit of the API.
type Visit struct {
	At         time.Time `json:"at"` // when it began
	Method     string    `json:"method"`
	URL        string    `json:"url"`
	Kind       string    `json:"kind"` // page, robots
	Status     int       `json:"status,omitempty"`
	Failure    string    `json:"failure,omitempty"`
	NoEnd      bool      `json:"no_end,omitempty"`
	Bytes      uint64    `json:"bytes"`
	Gap        *float64  `json:"gap_seconds"` // since the end of the last request to the host; null: there was none
	Delay      float64   `json:"delay_seconds"`
	Reason     string    `json:"delay_reason"`
	DelayText  string    `json:"delay_text,omitempty"`
	Verdict    string    `json:"verdict,omitempty"`
	Rule       string    `json:"rule,omitempty"`
	RuleLine   int       `json:"rule_line,omitempty"`
	Version    string    `json:"robots_version,omitempty"`
	Violations []any     `json:"violations,omitempty"`
}
