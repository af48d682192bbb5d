package crawl

import (
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

// gaveUpTally counts URLs that were given up.
type gaveUpTally struct {
	statuses [600]atomic.Uint64
	reasons  [256]atomic.Uint64 // by storage.Reason
}

// count counts the outcomes of a commit that are failures, those of recrawls too.
func (t *gaveUpTally) count(done []storage.Done) {
	for i := range done {
		switch o := &done[i].Outcome; {
		case o.State != storage.Failed:
		case o.Reason == storage.ReasonStatus && int(o.Status) < len(t.statuses):
			t.statuses[o.Status].Add(1)
		default:
			t.reasons[o.Reason].Add(1)
		}
	}
}

func (t *gaveUpTally) load() map[string]uint64 {
	m := make(map[string]uint64)
	for status := range t.statuses {
		if n := t.statuses[status].Load(); n > 0 {
			m[inspect.CauseName(storage.StatusCause(status))] = n
		}
	}
	for reason := range t.reasons {
		if n := t.reasons[reason].Load(); n > 0 {
			m[inspect.ReasonName(storage.Reason(reason))] = n
		}
	}
	return m
}
