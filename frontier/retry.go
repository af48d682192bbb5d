package frontier

import (
	"time"

	"github.com/amble-crawler/amble/storage"
)

// PutBack is the outcome that puts a URL back into its queue: it is due at once. What is remembered of it stays.
func PutBack(last storage.Outcome, now time.Time) storage.Outcome {
	last.State, last.Reason, last.Line, last.Attempts, last.Due = storage.Retrying, storage.ReasonOperator, 0, 0, now
	return last
}

// CanPutBack is the set of states out of which a URL can be put back into its queue. Fetched pages are not among them: they have recrawls.
func CanPutBack() storage.States {
	return storage.In(storage.Redirected, storage.Failed, storage.Denied, storage.Excluded, storage.Retrying)
}

// isPutBack reports whether an outcome comes from PutBack and not from a lease.
func isPutBack(d *storage.Done) bool {
	return d.When != 0 && d.Outcome.State == storage.Retrying && d.Outcome.Reason == storage.ReasonOperator
}

// forgetName drops what is known of a host's name, so that URLs which were put back are not given up for an earlier answer of DNS.
func (f *Frontier) forgetName(id storage.HostID) {
	h := f.hosts.get(id)
	if h == nil {
		return
	}
	h.absent, h.noLookupUntil, h.lookup = 0, 0, notLookedUp
	if h.active != nil {
		h.active.failUntil = always
	}
}
