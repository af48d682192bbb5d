package crawl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// unsaid are the URLs that earlier processes asked for without coming to commit what they got, and when: when they are asked for again, the
// request log says so. They are kept in a mark, since the next process may be killed as well before it comes to them.
type unsaid map[string]time.Time

// markUnsaid is the name of that mark.
const markUnsaid = "unsaid"

// maxUnsaid bounds it. Many more than there are workers are asked for and not committed only when the disk is full.
const maxUnsaid = 10_000

// openUnsaid reads what is left of the mark.
func (e *Engine) openUnsaid() (unsaid, error) {
	text, err := e.store.Mark(markUnsaid)
	if err != nil {
		return nil, err
	}
	u := make(unsaid)
	for line := range strings.Lines(string(text)) {
		at, url, found := strings.Cut(strings.TrimSpace(line), " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("mark %s: %w", markUnsaid, storage.ErrCorrupt)
		}
		if err := e.keepUnsaid(u, url, time.UnixMilli(ms)); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// add adds what the process before left in the start ledger.
func (u unsaid) add(left uncommitted) {
	for _, s := range left {
		if r, ok := openRequest(s); ok {
			u[r.URL.String()] = s.At
		}
	}
}

// has tells whether a URL was asked for before a time.
func (u unsaid) has(url weburl.URL, at time.Time) bool {
	before, asked := u[url.String()]
	return asked && before.Before(at)
}

// keepUnsaid adds a URL that still has no outcome from after the request.
func (e *Engine) keepUnsaid(u unsaid, text string, at time.Time) error {
	parsed, err := weburl.Parse(text)
	if err != nil {
		return nil
	}
	committed, err := e.committed(parsed)
	if err == nil && committed.Before(at.Truncate(time.Second)) {
		u[text] = at
	}
	return err
}

// committed is when the last outcome of a URL, or of a robots.txt, is from.
func (e *Engine) committed(u weburl.URL) (time.Time, error) {
	head, _, err := e.store.Lookup(u)
	if !errors.Is(err, storage.ErrNotFound) {
		return head.Last.At, err
	}
	encoded, err := e.store.Policy(u.Origin())
	if err != nil {
		return time.Time{}, err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return time.Time{}, nil // none, or one that is asked for anew
	}
	return record.Fetched, nil
}

// encode is the mark's value; nil: there is none.
func (u unsaid) encode() (text []byte) {
	n := 0
	for url, at := range u {
		if n++; n > maxUnsaid {
			break
		}
		text = append(strconv.AppendInt(text, at.UnixMilli(), 10), ' ')
		text = append(append(text, url...), '\n')
	}
	return text
}

// again tells whether a URL is asked for again for this reason; committed is when its last outcome is from, to the second.
func (u unsaid) again(l *frontier.Lease, committed time.Time) bool {
	if len(u) == 0 {
		return false
	}
	url := l.URL.String()
	at, asked := u[url]
	delete(u, url)
	return asked && committed.Before(at.Truncate(time.Second))
}
