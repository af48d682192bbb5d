//go:build !core

package recovery

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Requests is the request log of a crawl, and what earlier processes had requested. The dispatcher owns it.
type Requests struct {
	log         *requestlog.Log
	uncommitted uncommitted // requests of earlier processes that have not been made again
	failing     bool        // the last write failed
	complain    func(error)
}

// Again reports whether a request for a URL is one of an earlier process that is made again; committed is when the last
// outcome of the URL is from, to the second. The next request for it is not.
func (l *Requests) Again(u weburl.URL, committed time.Time) bool {
	return l.uncommitted.take(u, committed)
}

// Write takes a request for the next flush.
func (l *Requests) Write(q *requestlog.Request) { l.note(l.log.Add(q)) }

// Flush writes the requests that have ended. What is committed, and what the API shows, comes after it.
func (l *Requests) Flush() { l.note(l.log.Flush()) }

// mark is the value of the mark of the requests that have not been made again; nil: there are none.
func (l *Requests) mark() []byte { return l.uncommitted.encode() }

// note takes note of an error. The crawl goes on without: the log says itself what it lacks.
func (l *Requests) note(err error) {
	if err != nil && !l.failing {
		l.complain(err)
	}
	l.failing = err != nil
}

// Close closes the log.
func (l *Requests) Close() error {
	if err := l.log.Close(); err != nil {
		return fmt.Errorf("close the request log: %w", err)
	}
	return nil
}

// uncommitted are the URLs of the uncommitted requests of earlier processes, and when those began.
// The log says of the next request for such a URL that it is made again. A mark keeps them, since
// the next process may be killed as well before it comes to them.
type uncommitted map[string]time.Time

// maxUncommitted bounds that mark. Only on a full disk are there many more requests without a commit
// than there are workers.
const maxUncommitted = 10_000

// take removes a URL, and reports whether it was there and has no outcome from after that request;
// committed is when its last outcome is from, to the second.
func (u uncommitted) take(url weburl.URL, committed time.Time) bool {
	if len(u) == 0 {
		return false
	}
	at, known := u[url.String()]
	delete(u, url.String())
	return known && committed.Before(at.Truncate(time.Second))
}

// encode returns the value of the mark; nil: there is none.
func (u uncommitted) encode() (text []byte) {
	n := 0
	for url, at := range u {
		if n++; n > maxUncommitted {
			break
		}
		text = fmt.Appendf(text, "%d %s\n", at.UnixMilli(), url)
	}
	return text
}

// openUncommitted reads what is left of the mark: URLs without an outcome from after the request.
func (r *recovery) openUncommitted() (uncommitted, error) {
	text, err := r.store.Mark(storage.MarkUncommitted)
	if err != nil {
		return nil, err
	}
	u := make(uncommitted)
	for line := range strings.Lines(string(text)) {
		since, text, found := strings.Cut(strings.TrimSpace(line), " ")
		ms, err := strconv.ParseInt(since, 10, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("mark %s: %w", storage.MarkUncommitted, storage.ErrCorrupt)
		}
		url, err := weburl.Parse(text)
		if err != nil {
			continue
		}
		committed, err := r.lastOutcome(url)
		if err != nil {
			return nil, err
		}
		if at := time.UnixMilli(ms); committed.Before(at.Truncate(time.Second)) {
			u[text] = at
		}
	}
	return u, nil
}

// lastOutcome returns when the last outcome of a URL, or of a robots.txt, is from.
func (r *recovery) lastOutcome(u weburl.URL) (time.Time, error) {
	head, _, err := r.store.Lookup(u)
	if !errors.Is(err, storage.ErrNotFound) {
		return head.Last.At, err
	}
	record, err := r.robotsRecord(u.Origin())
	return record.Fetched, err
}

// openRequests begins the request log of this process. Of the uncommitted requests it logs those
// that are not in the log: nobody saw their end. That is before the restart holds are committed, so
// that a crash meanwhile loses none of them.
func (r *recovery) openRequests(boot string) (l *Requests, err error) {
	dir := filepath.Join(r.o.DataDir, requestlog.DirName)
	l = &Requests{complain: func(err error) {
		r.log.Warn("the request log cannot be written; what it lacks is written later, or counted as lost",
			"error", err)
	}}
	now, uptime := r.o.Uptime()
	if uptime > 0 {
		uptime -= now.Sub(r.o.Opened)
	}
	l.log, err = requestlog.Open(dir, r.o.Requests, requestlog.Process{
		Began: r.o.Opened, Uptime: uptime, Boot: boot, Agent: r.o.UserAgent, Tokens: r.o.Frontier.Tokens,
		Obey: r.o.Frontier.Obey, LedgerBase: r.ledger.End,
	})
	if err != nil {
		return nil, err
	}
	if l.uncommitted, err = r.openUncommitted(); err == nil && !r.o.IgnoreRobots {
		err = r.logStarted(l)
	}
	return l, err
}

// logStarted logs the requests of the ledger that are not in the log, and adds all of them to the uncommitted ones.
func (r *recovery) logStarted(l *Requests) error {
	unseen := append(slices.Collect(maps.Values(r.started)), r.ended...)
	for _, q := range unseen {
		if r.isLogged(&q) {
			continue
		}
		if err := r.findPolicy(&q); err != nil {
			return err
		}
		before, known := l.uncommitted[q.URL.String()]
		q.Again = known && before.Before(q.Start)
		q.For = weburl.Origin{} // the log has none of a request without an end
		l.Write(&q)
	}
	l.Flush()
	for _, q := range unseen {
		l.uncommitted[q.URL.String()] = q.Start
	}
	return nil
}

// findPolicy finds the robots.txt that a request names, if it is the one that was committed last.
// Else the process that made the request had fetched it, and it is in the log.
func (r *recovery) findPolicy(q *requestlog.Request) error {
	if q.Policy == nil {
		return nil
	}
	record, err := r.robotsRecord(q.URL.Origin())
	if err == nil && robots.VersionOf(record.Body) == q.Policy.Version {
		q.Policy.Record = record
	}
	return err
}
