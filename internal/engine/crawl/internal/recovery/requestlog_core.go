//go:build core

package recovery

import (
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Requests is a request log that keeps nothing: this program is the core alone.
type Requests struct{}

// Again is false: nobody reads it.
func (*Requests) Again(weburl.URL, time.Time) bool { return false }

// Write does nothing.
func (*Requests) Write(*requestlog.Request) {}

// Flush does nothing.
func (*Requests) Flush() {}

// Close does nothing.
func (*Requests) Close() error { return nil }

// mark is empty: no request is said to be made again.
func (*Requests) mark() []byte { return nil }

func (r *recovery) openRequests(string) (*Requests, error) { return &Requests{}, nil }
