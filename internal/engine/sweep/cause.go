package sweep

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// The prefixes of the marks of sweeps. The rest of the name of most begins with the id of a host.
const (
	MarkDelete    = "delete/"     // URLs of a host that are deleted
	MarkDeleteAll = "delete-all/" // the hosts whose URLs are deleted; the rest is no host

	MarkRecheck = "recheck/" // denied URLs of an origin and its new rules
	MarkDrop    = "drop/"    // the queue of a host that is dropped
	MarkOffer   = "offer/"   // URLs of a host at which another version crashed
	MarkAdopt   = "adopt/"   // fetched pages of a host that have no recrawl planned
	MarkWall    = "wall/"    // URLs of a host that a wall has refused
	MarkRetry   = "retry/"   // URLs that the operator, or a more generous setting, puts back; the rest is a number
	MarkExclude = "exclude"  // URLs that opted out; the name is nothing else
	// MarkCrash is the prefix of the marks that hold, for a host with crashed URLs, the version of
	// amble that crashed last. No sweep is under way for these.
	MarkCrash = "crash/"
)

// CrashMark returns the name of the mark of a host with crashed URLs.
func CrashMark(host storage.HostID) string { return fmt.Sprintf("%s%d", MarkCrash, host) }

// scanMark reads the numbers in the name of a mark behind its prefix.
func scanMark(name, prefix, format string, numbers ...any) error {
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, prefix), format, numbers...); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return nil
}

// StoredRules returns the rules of the robots.txt that the store has of an origin of a host.
type StoredRules func(host storage.HostID, origin uint8) (*robots.Rules, error)

// SourceStore is what a Source reads.
type SourceStore interface {
	hostFinder
	markReader
}

type markReader interface {
	Marks(prefix string) (map[string][]byte, error)
}

// Source makes sweeps: new ones, and those that an earlier process did not finish.
type Source struct {
	Store SourceStore
	Log   *slog.Logger
	Rules StoredRules
	Scope func() *frontier.Scope // in force
}

// open makes the sweep of a mark again.
type open func(name string, value []byte) (*Sweep, error)

// Unfinished returns the sweeps whose marks are in the store, except for adoptions. lifts are those of
// the settings in force.
func (s *Source) Unfinished(lifts []Lift) (sweeps []*Sweep, err error) {
	kinds := map[string]open{
		MarkRetry:   func(name string, value []byte) (*Sweep, error) { return s.openRetry(name, value, lifts) },
		MarkRecheck: s.openRecheck, MarkOffer: openOffer, MarkWall: openWall, MarkExclude: s.openExclusion,
	}
	maps.Copy(kinds, ofCommands())
	for prefix, open := range kinds {
		marks, err := s.Store.Marks(prefix)
		if err != nil {
			return nil, err
		}
		for name, value := range marks {
			x, err := open(name, value)
			if err != nil {
				return nil, fmt.Errorf("mark %s: %w", name, err)
			}
			sweeps = append(sweeps, x)
		}
	}
	return sweeps, nil
}

// Recheck returns the sweep that applies the rules of an origin to its denied URLs: those that
// are allowed now are due at once.
func (s *Source) Recheck(r frontier.Recheck) *Sweep { return newRecheck(s.Rules, r) }

func newRecheck(stored StoredRules, r frontier.Recheck) *Sweep {
	denied := storage.In(storage.Denied)
	s := newHostSweep(fmt.Sprintf("%s%d/%d", MarkRecheck, r.Host, r.Origin), r.Host, denied, unbounded)
	s.ready = func() (_ decision, err error) {
		if r.Rules == nil {
			r.Rules, err = stored(r.Host, r.Origin)
		}
		return func(l *storage.Located, now time.Time) (storage.Done, bool) {
			allowed := l.Origin == r.Origin && r.Rules.Match(l.RequestURI).Allowed
			o := l.Last // with what is remembered of the page
			o.State, o.Reason, o.Line, o.Attempts = storage.Retrying, storage.ReasonRobots, 0, 0
			o.At, o.Due = now, now
			return changeTo(l, denied, o), allowed
		}, err
	}
	return s
}

func (s *Source) openRecheck(name string, value []byte) (*Sweep, error) {
	var r frontier.Recheck
	if err := scanMark(name, MarkRecheck, "%d/%d", &r.Host, &r.Origin); err != nil {
		return nil, err
	}
	x := s.Recheck(r)
	return x, x.restore(value)
}

// openOfHost goes on with a sweep whose mark is named after its host alone.
func openOfHost(name string, value []byte, prefix string, of func(storage.HostID) *Sweep) (*Sweep, error) {
	var host storage.HostID
	if err := scanMark(name, prefix, "%d", &host); err != nil {
		return nil, err
	}
	s := of(host)
	return s, s.restore(value)
}

// newOffer returns the sweep that makes the crashed URLs of a host due at once.
func newOffer(host storage.HostID) *Sweep {
	failed := storage.In(storage.Failed)
	s := newHostSweep(fmt.Sprintf("%s%d", MarkOffer, host), host, failed, unbounded)
	s.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		o := l.Last
		o.State, o.Attempts, o.At, o.Due = storage.Retrying, 0, now, now
		return changeTo(l, failed, o), l.Last.Reason == storage.ReasonCrash
	}
	return s
}

func openOffer(name string, value []byte) (*Sweep, error) {
	return openOfHost(name, value, MarkOffer, newOffer)
}

// Offers returns the sweeps that queue the URLs again at which another version crashed, by the names
// of the marks that say so.
func (s *Source) Offers(version string) (map[string]*Sweep, error) {
	marks, err := s.Store.Marks(MarkCrash)
	if err != nil {
		return nil, err
	}
	offers := make(map[string]*Sweep)
	for name, crashed := range marks {
		if string(crashed) == version {
			continue
		}
		var host storage.HostID
		if err := scanMark(name, MarkCrash, "%d", &host); err != nil {
			return nil, fmt.Errorf("mark %s: %w", name, err)
		}
		offers[name] = newOffer(host)
	}
	return offers, nil
}

// Exclusion returns the sweep that excludes the URLs that wait and opted out, or are of no seed any more, of all hosts.
// A new one replaces the mark of one under way.
func (s *Source) Exclusion() *Sweep {
	states := frontier.DropMatters()
	x := newHostSweep(MarkExclude, storage.NoHost, states, unbounded)
	x.encode = func() []byte { return []byte(x.at.String()) }
	x.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		o := frontier.OptOutOutcome(now)
		switch s.Scope().CheckHead(l.URL(), &l.Entry) {
		case frontier.OptedOut:
		case frontier.OutOfSeeds:
			o.Reason = storage.ReasonScope
		default:
			return storage.Done{}, false
		}
		o.History = recrawl.History(l.Last.History).Defer(0)
		return changeTo(l, states, o), true
	}
	return x
}

func (s *Source) openExclusion(_ string, value []byte) (x *Sweep, err error) {
	x = s.Exclusion()
	if x.at, err = storage.ParsePosition(string(value)); err != nil {
		err = fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return x, err
}

// NewWall returns the sweep that puts the URLs of a host back into their queue whose outcome is that
// of a wall, and one page in a directory that answered before it, which probes ask for.
func NewWall(w frontier.WallBegun) *Sweep {
	states := storage.In(storage.Fetched, storage.Failed, storage.Retrying)
	if w.Kind == wall.KindRedirect {
		states = storage.In(storage.Redirected, storage.Fetched, storage.Failed, storage.Retrying)
	}
	hasProbe := false
	since := w.Since.Truncate(time.Second) // as outcomes are stored
	mark := fmt.Sprintf("%s%d/%d/%d/%d", MarkWall, w.Host, w.Kind, w.Document, since.Unix())
	s := newHostSweep(mark, w.Host, states, unbounded)
	s.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		last := l.Last
		if !hasProbe && last.Answered() && last.At.Before(since) && wall.IsInDirectory(l.RequestURI) {
			hasProbe = true
			return changeTo(l, storage.In(last.State), frontier.PutBackFromWall(last, now)), true
		}
		switch {
		case last.At.Before(since), w.Kind == wall.KindRedirect && last.State == storage.Fetched,
			!w.Kind.Covers(int(last.Status)), last.Bytes > wall.LongestMarked,
			last.Reason == storage.ReasonWall && last.Attempts == 0,
			w.Kind == wall.KindEmpty && last.Bytes > 0 && last.State == storage.Fetched,
			w.Kind.IsSame() && !wall.IsDocument(w.Document, last.Digest, last.Bytes):
			return storage.Done{}, false
		}
		if last.State != storage.Retrying { // it has a line
			s.superseded = append(s.superseded, Superseded{
				URL: l.URL().String(), Depth: l.Depth, Attempts: last.Attempts, Why: "wall " + w.Kind.String(),
			})
		}
		o := frontier.PutBackFromWall(last, now)
		if last.State == storage.Fetched { // what it has is of the wall, and not of the page
			o.Bytes, o.Digest, o.Simhash, o.Stamp = 0, 0, 0, 0
			o.ETag, o.Modified, o.Usage = "", "", ""
		}
		return changeTo(l, storage.In(last.State), o), true
	}
	return s
}

func openWall(name string, value []byte) (*Sweep, error) {
	var w frontier.WallBegun
	var since int64
	if err := scanMark(name, MarkWall, "%d/%d/%d/%d", &w.Host, &w.Kind, &w.Document, &since); err != nil {
		return nil, err
	}
	w.Since = time.Unix(since, 0)
	s := NewWall(w)
	return s, s.restore(value)
}
