package work

import (
	"net/http"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/storage"
)

// Links that leave the scope are URLs like any other: of their hosts, with the politeness and the rules of these. But
// nothing of them is read: a HEAD says whether they answer. Servers that refuse a HEAD are common, so a status that
// says that something is wrong is confirmed by a GET in its turn, whose body is not read. Only that says something of a
// wall: a refused HEAD is none.

// checkOf returns the request for a link that leaves the scope.
func checkOf(l *frontier.Lease) fetch.Request {
	return fetch.Request{
		URL: l.URL, Address: l.Address, AnyType: true, HeaderOnly: true, Head: !isConfirmed(&l.Head.Last),
	}
}

// isConfirmed reports whether a GET follows the last request for a link.
func isConfirmed(last *storage.Outcome) bool {
	return last.State == storage.Retrying && last.Status >= http.StatusBadRequest
}

// checked returns the outcome of such a request, and when the next one is made; nil: as for any other URL.
func checked(l *frontier.Lease, resp *fetch.Response, failure *fetch.Error) (o storage.Outcome, next *time.Time) {
	if failure != nil {
		return failed(failure), nil
	}
	o = storage.Outcome{State: storage.Excluded, Reason: storage.ReasonChecked, Status: uint16(resp.Status)}
	switch {
	case httpfield.IsTemporary(resp.Status):
		o.State, o.Reason = storage.Retrying, storage.ReasonStatus
	case resp.Status >= http.StatusBadRequest:
		o.State, o.Reason = storage.Failed, storage.ReasonStatus
		if !isConfirmed(&l.Head.Last) {
			next = &resp.End
		}
	case httpfield.IsRedirect(resp.Status):
		if target, err := l.URL.Resolve(resp.Header.Get("Location")); err == nil {
			o.Note = "redirects to " + target.String()
		}
	}
	return o, next
}
