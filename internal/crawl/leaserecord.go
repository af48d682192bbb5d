package crawl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// leaseRecord is what is kept of a lease over a restart: in a line of the start ledger, and later in
// a mark.
type leaseRecord struct {
	ID       LeaseID       `json:"id"`
	Fetcher  string        `json:"fetcher"`
	URL      string        `json:"url"`
	Address  string        `json:"address,omitempty"`
	Given    time.Time     `json:"given"`
	Deadline time.Time     `json:"deadline"`
	Delay    time.Duration `json:"delay"`
	Line     int           `json:"line,omitempty"`
	Version  string        `json:"version,omitempty"` // of the robots.txt that allowed it
	Offset   uint64        `json:"offset"`            // in the start ledger
	// Again says that the last outcome of the URL is of the second in which it was given. The store
	// keeps seconds, so the outcome alone would not tell whether it came before the lease or ended it.
	Again bool `json:"again,omitempty"`
}

// left is for how long a lease is still out. A clock that was set back does not prolong it.
func (l *leaseRecord) left(now time.Time) time.Duration {
	return min(l.Deadline.Sub(now), l.Deadline.Sub(l.Given))
}

// encode returns the value of the mark of a lease.
func (l *leaseRecord) encode() []byte {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings, numbers and times can be encoded
	}
	return text
}

// leaseNote begins the note of a lease in the start ledger, againNote that of one with Again, and
// reportNote that of the work on its report: a process may die of that as of a response.
const leaseNote, againNote, reportNote = "lease", "again", "report"

// lend writes a lease into the start ledger, and returns its offset. Its note is that of startNote
// with the id, the fetcher and the deadline in Unix milliseconds before the URL.
func (s startLedger) lend(l *frontier.Lease, x *remoteLease) (offset uint64, err error) {
	if x.Again {
		return s.note(againNote, l, x)
	}
	return s.note(leaseNote, l, x)
}

// claim writes that the report of a lease is worked on, as lend does.
func (s startLedger) claim(l *frontier.Lease, x *remoteLease) (offset uint64, err error) {
	return s.note(reportNote, l, x)
}

func (s startLedger) note(kind string, l *frontier.Lease, x *remoteLease) (offset uint64, err error) {
	start := storage.Start{Host: l.URL.Host(), Address: x.Address, At: x.Given, Delay: l.Delay}
	start.Note = fmt.Sprintf("%s,%d,%s,%s/%s/%d,%s", kind, x.Line, x.Version, x.ID, x.Fetcher,
		x.Deadline.UnixMilli(), x.URL)
	return s.Append(start)
}

// parseLease makes a lease of a line of the start ledger; false: its note is not of that kind.
func parseLease(kind string, s storage.Start, offset uint64) (l leaseRecord, ok bool) {
	parts := strings.SplitN(s.Note, ",", 5)
	if len(parts) != 5 || parts[0] != kind {
		return l, false
	}
	line, lineErr := strconv.Atoi(parts[1])
	of := strings.Split(parts[3], "/")
	if len(of) != 3 || lineErr != nil {
		return l, false
	}
	deadline, err := strconv.ParseInt(of[2], 10, 64)
	if err != nil {
		return l, false
	}
	return leaseRecord{
		ID: LeaseID(of[0]), Fetcher: of[1], URL: parts[4], Address: s.Address, Given: s.At,
		Deadline: time.UnixMilli(deadline), Delay: s.Delay, Line: line, Version: parts[2], Offset: offset,
		Again: kind == againNote,
	}, true
}

// openLeases reads the leases of the processes before: those with a mark, and those that only the
// start ledger names. The last line of a URL counts.
func (r *recovery) openLeases() error {
	marks, err := r.store.Marks(markLease)
	if err != nil {
		return err
	}
	r.marked = marks
	for name, value := range marks {
		var l leaseRecord
		if err := json.Unmarshal(value, &l); err != nil || markLease+string(l.ID) != name {
			return fmt.Errorf("mark %s: %w", name, storage.ErrCorrupt)
		}
		r.leases[l.URL] = l
	}
	return nil
}

// settleLeases decides which leases are still out. One that ran out meanwhile is a request whose end
// nobody saw.
func (r *recovery) settleLeases() error {
	for _, url := range slices.Sorted(maps.Keys(r.leases)) {
		l := r.leases[url]
		q, ok := l.request()
		if !ok {
			continue
		}
		since := q.Start.Truncate(time.Second)
		if l.Again {
			since = since.Add(time.Second)
		}
		open, err := r.isOpenSince(q.URL, since)
		if err != nil {
			return err
		}
		if !open {
			continue
		}
		if l.left(r.opened) <= 0 {
			if known, is := r.ledger.Hosts[q.URL.Host()]; !is || known < l.Delay {
				r.ledger.Hosts[q.URL.Host()] = l.Delay
			}
			r.ranOut = append(r.ranOut, q)
			continue
		}
		r.out = append(r.out, l)
	}
	return nil
}

// markLeases adds the marks of the leases that are out to b: the start ledger begins again.
func (r *recovery) markLeases(b *storage.Batch) {
	for name := range r.marked {
		b.Marks[name] = nil
	}
	for i := range r.out {
		b.Marks[markLease+string(r.out[i].ID)] = r.out[i].encode()
	}
}

// request is the request of a lease, as far as it is known.
func (l *leaseRecord) request() (q requestlog.Request, ok bool) {
	u, err := weburl.Parse(l.URL)
	if err != nil {
		return q, false
	}
	q = requestlog.Request{URL: u, Sent: true, Start: l.Given, Decided: l.Given, Delay: l.Delay, Line: l.Line,
		Allowed: true, LedgerOffset: l.Offset, Fetcher: l.Fetcher}
	if v, err := robots.ParseVersion(l.Version); err == nil {
		q.Policy = &requestlog.Policy{Version: v}
	}
	q.Address, _ = netip.ParseAddr(l.Address) // invalid: none is known
	return q, true
}

// adoptLeases gives the frontier the leases that are still out.
func (d *dispatcher) adoptLeases(list []leaseRecord, s store) error {
	slices.SortFunc(list, func(a, b leaseRecord) int {
		return cmp.Or(a.Given.Compare(b.Given), cmp.Compare(a.ID, b.ID))
	})
	for _, l := range list {
		q, _ := l.request()
		head, host, err := s.Lookup(q.URL)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("adopt the lease of %s: %w", l.URL, err)
		}
		now := d.o.Now()
		id, ok := d.f.Adopt(frontier.Adopted{
			Host: host.ID, Name: host.Name, URL: q.URL, Head: head, Address: q.Address,
			At: now.Add(-max(now.Sub(l.Given), 0)), Delay: l.Delay,
		}, now)
		if ok {
			d.adopt(l, id, storage.Position{Host: host.ID, Ordinal: head.Ordinal})
		}
	}
	d.collect()
	return nil
}
