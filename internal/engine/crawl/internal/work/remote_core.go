//go:build core

package work

import (
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// RemoteResult is of no result: this program lends no pages to fetchers outside of it.
type RemoteResult struct{}

// Fetcher returns no name.
func (*RemoteResult) Fetcher() string { return "" }

// Describe adds nothing.
func (*RemoteResult) Describe(*requestlog.Request) {}

func (res *Result) digestOf(body *spool.Content) (digest.Digest, error) { return bodyDigest(body) }

func (res *Result) hasBody() bool { return true }

func (rd *reading) takeReported(*Result, *archive.Page, *extract.Directives) {}
