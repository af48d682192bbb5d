//go:build core

package crawl

import (
	"errors"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/storage"
)

// This program lends no pages to fetchers outside of it, and takes no puts of clients.

type lendings struct{ views }

// Fetcher is empty.
type Fetcher struct{}

type keyIndex struct{}

type putGroup struct{}

type lender struct{ outcomes }

type remoteLeases struct{}

func (*remoteLeases) Len() int                             { return 0 }
func (*remoteLeases) Working() int                         { return 0 }
func (*remoteLeases) Fetchers() []Fetcher                  { return nil }
func (*remoteLeases) OffsetBefore(others uint64) uint64    { return others }
func (*remoteLeases) Save(func(string, []byte), time.Time) {}
func (*remoteLeases) next(bool) time.Time                  { return time.Time{} }
func (*remoteLeases) isWanted() bool                       { return false }
func (*remoteLeases) refuseAll()                           {}
func (*remoteLeases) abandon(*frontier.Frontier)           {}

func wireLending(*Engine, *dispatcher, *workers) {}
func beginLending(*Engine, *workers)             {}

func (*lender) lendPages()                                  {}
func (*lender) runOut(time.Time)                            {}
func (*lender) unpark()                                     {}
func (*lender) restoreLending(recovery.Leases, store) error { return nil }
func (*lender) takePuts(*putGroup)                          {}
func (*lender) takeBack(storage.HostID, uint32) error       { return nil }

func (*outcomes) endRemote(*work.Result) (note func())          { return func() {} }
func (*outcomes) completeOverridden(*work.Result) (bool, error) { return false, nil }
func (*outcomes) endPuts(*batch)                                {}
func (*outcomes) keysCommitted(*batch, time.Time)               {}

func (*batch) sizeResults()                          {}
func (*batch) answerPuts(error)                      {}
func (*batching) putsFrom(*mailbox) <-chan *putGroup { return nil }

// restoreSettings refuses a crawl for which clients have set what this program would not hold.
func (e *Engine) restoreSettings() error {
	for _, prefix := range []string{marks.Inactive, marks.Delay, marks.Limit} {
		names, err := e.store.MarkNames(prefix, "", 1)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return errors.New("clients of URLFrontier have set delays or limits of this crawl, which this " +
				"program was built without (build tag core): use the whole program")
		}
	}
	return nil
}
