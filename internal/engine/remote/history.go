//go:build !core

package remote

import (
	"maps"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/starts"
)

// History are the leases of earlier processes, by all that is left of them: marks, lines of the start ledger and
// requests of the request log. What they say later replaces what they said earlier.
type History struct {
	leases map[string]*lastLease // by URL
	logged map[string]bool       // the ids of those whose requests are in the request log
}

// lastLease is the last lease of a URL.
type lastLease struct {
	Record
	ended bool // the start ledger says so
}

// NewHistory returns a history without leases.
func NewHistory() *History {
	return &History{leases: make(map[string]*lastLease), logged: make(map[string]bool)}
}

// Len returns how many leases there are.
func (p *History) Len() int { return len(p.leases) }

// AddMark takes a mark. The error is storage.ErrCorrupt.
func (p *History) AddMark(name string, value []byte) error {
	r, err := Decode(name, value)
	if err == nil {
		p.leases[r.URL] = &lastLease{Record: r}
	}
	return err
}

// AddLine takes a line of the start ledger; false: its note is not that of a lease. If the line says that a
// report is worked on, its lease is returned.
func (p *History) AddLine(s starts.Start, offset uint64) (reported *Record, ok bool) {
	kind, r := Parse(s, offset)
	last := p.leases[r.URL]
	switch kind {
	case "":
		return nil, false
	case NoteLease, NoteAgain:
		p.leases[r.URL] = &lastLease{Record: r}
		return nil, true
	case NoteReport:
		reported = &r
	}
	if last != nil && last.ID == r.ID {
		last.ended = true
	}
	return reported, true
}

// AddFetch takes note that amble itself has requested a URL after its lease.
func (p *History) AddFetch(url string) { delete(p.leases, url) }

// AddLogged takes a request that is in the request log.
func (p *History) AddLogged(q *requestlog.Request) { p.logged[q.Lease] = true }

// IsLogged reports whether the request of a lease is in the request log.
func (p *History) IsLogged(id string) bool { return p.logged[id] }

// Settle returns the leases that are still out, and the requests of those that are not and have no outcome:
// requests that are logged, and those of leases that have run out, whose end nobody saw. isOpen reports
// whether a URL is known and has no outcome since a second.
func (p *History) Settle(now time.Time, isOpen func(u weburl.URL, since time.Time) (bool, error)) (
	out []Record, ended []requestlog.Request, err error,
) {
	for _, url := range slices.Sorted(maps.Keys(p.leases)) {
		l := p.leases[url]
		q, ok := l.Request()
		if !ok {
			continue
		}
		since := q.Start.Truncate(time.Second)
		if l.Again {
			since = since.Add(time.Second)
		}
		open, err := isOpen(q.URL, since)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !open:
		case p.logged[l.ID]:
			ended = append(ended, q)
		case l.ended: // nothing was requested, or its report was worked on
		case l.Left(now) <= 0:
			ended = append(ended, q)
		default:
			out = append(out, l.Record)
		}
	}
	return out, ended, nil
}
