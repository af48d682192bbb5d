package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// Selection says which URLs are put back into their queues, or left out: those that meet all of it. The zero
// value is every URL that can be put back.
type Selection struct {
	// Drop leaves the URLs out for good, in place of putting them back. States are a subset of frontier.CanDrop then;
	// zero: frontier.DropMatters, or with URLs all of them.
	Drop    bool
	States  storage.States   // a subset of frontier.CanPutBack; zero: all of these
	Reasons []storage.Reason // any of them; none: every reason
	Host    string           // canonical name; empty: every host
	Pattern *regexp.Regexp   // that the URL matches; nil: every URL
	// Contains is a part of the URL.
	Contains string
	// URLs are these, in canonical form and sorted; none: every URL.
	URLs []string
	inspect.PagesOf
	// Statuses are those of the last response: any of them; none: every one, or no response.
	Statuses []int
	// Fetched selects pages that were fetched in one of these spans, and no other URLs. They are fetched as
	// if for the first time, since what is left of them is lost.
	Fetched []Span
	// Before selects URLs whose last response is older, in States, which may be pages that were fetched; zero: any.
	Before time.Time
}

// Span is a time from a second to another, both included, in Unix seconds.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// contains reports whether a text is one of a sorted list.
func contains(list []string, text string) bool {
	_, is := slices.BinarySearch(list, text)
	return is
}

// within reports whether a time is in one of the spans.
func within(spans []Span, at time.Time) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return s.From <= at.Unix() && at.Unix() <= s.To })
}

// states returns those that a URL may be in. States that cannot be left are never among them.
func (s *Selection) states() storage.States {
	switch {
	case len(s.Fetched) > 0:
		return storage.In(storage.Fetched)
	case !s.Before.IsZero():
		return s.States
	}
	can := frontier.CanPutBack()
	if s.Drop {
		can = frontier.CanDrop()
	}
	switch {
	case s.States != 0:
		return s.States & can
	case s.Drop && len(s.URLs) == 0:
		return frontier.DropMatters()
	}
	return can
}

// selects reports whether a URL is selected, as far as its host and its seed do not decide.
func (s *Selection) selects(l *storage.Located) bool {
	return s.states().Has(l.Last.State) && (len(s.Fetched) == 0 || within(s.Fetched, l.Last.At)) &&
		(s.Before.IsZero() || l.Last.At.Before(s.Before)) &&
		(len(s.Reasons) == 0 || slices.Contains(s.Reasons, l.Last.Reason)) &&
		(len(s.Statuses) == 0 || slices.Contains(s.Statuses, int(l.Last.Status))) &&
		(len(s.URLs) == 0 || contains(s.URLs, l.URL().String())) &&
		(s.Contains == "" || strings.Contains(l.URL().String(), s.Contains)) &&
		(s.Pattern == nil || s.Pattern.MatchString(l.URL().String()))
}

// storedSelection is a Selection as a mark has it. Its numbers are those of the storage package,
// which never change.
type storedSelection struct {
	States   int    `json:"states,omitempty"`
	Statuses []int  `json:"statuses,omitempty"`
	Reasons  []int  `json:"reasons,omitempty"`
	Host     string `json:"host,omitempty"`
	Pattern  string `json:"pattern,omitempty"`
	Contains string `json:"contains,omitempty"`
	Seed     string `json:"seed,omitempty"`
	Tag      string `json:"tag,omitempty"`
	Fetched  []Span `json:"fetched,omitempty"`
	Before   int64  `json:"before,omitempty"` // Unix seconds

	Drop bool     `json:"drop,omitempty"`
	URLs []string `json:"urls,omitempty"`
}

// MarshalJSON makes a storedSelection.
func (s Selection) MarshalJSON() ([]byte, error) {
	stored := storedSelection{
		States: int(s.States), Statuses: s.Statuses, Host: s.Host, Contains: s.Contains, Seed: s.Seed.String(),
		Tag: s.Tag, Fetched: s.Fetched, Drop: s.Drop, URLs: s.URLs,
	}
	if !s.Before.IsZero() {
		stored.Before = s.Before.Unix()
	}
	for _, r := range s.Reasons {
		stored.Reasons = append(stored.Reasons, int(r))
	}
	if s.Pattern != nil {
		stored.Pattern = s.Pattern.String()
	}
	return json.Marshal(stored)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *Selection) UnmarshalJSON(b []byte) error {
	var stored storedSelection
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*s = Selection{States: storage.States(stored.States), Statuses: stored.Statuses, Host: stored.Host,
		Contains: stored.Contains, Fetched: stored.Fetched, Drop: stored.Drop, URLs: stored.URLs}
	if err := s.OfSeed(stored.Seed, stored.Tag); err != nil {
		return err
	}
	if stored.Before != 0 {
		s.Before = time.Unix(stored.Before, 0)
	}
	for _, r := range stored.Reasons {
		s.Reasons = append(s.Reasons, storage.Reason(r))
	}
	if stored.Pattern == "" {
		return nil
	}
	var err error
	if s.Pattern, err = regexp.Compile(stored.Pattern); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// Retry is a sweep that puts URLs back into their queues, or leaves them out.
type Retry struct {
	Sweep
	command Command
	done    chan struct{} // closed when the end is on disk
}

// Command is what the mark of a retry holds.
type Command struct {
	Selection *Selection     `json:"selection,omitempty"` // by the operator
	Lifted    []string       `json:"lifted,omitempty"`    // else: settings that became more generous
	Host      storage.HostID `json:"host,omitempty"`      // where the sweep goes on
	Ordinal   uint32         `json:"ordinal,omitempty"`
	Back      uint64         `json:"back,omitempty"` // URLs put back so far
}

// Encode returns the value of the mark.
func (c Command) Encode() []byte {
	b, _ := json.Marshal(c) // of plain data
	return b
}

// Retried is the progress of a retry.
type Retried struct {
	Inspected uint64 `json:"looked"`            // URLs examined
	Back      uint64 `json:"back,omitempty"`    // of these, those that are put back; in a dry run, those that would be
	Dropped   uint64 `json:"dropped,omitempty"` // those that are left out
}

// hostFinder finds a host by its name.
type hostFinder interface {
	HostByName(string) (storage.Host, error)
}

// NewRetry makes the retry of a command. The lifts are needed if the command is about settings, and set, which returns
// the seeds in force, if it is about pages of seeds. The error is inspect.ErrUnknown if the host is not known, or one
// of reading.
func NewRetry(s hostFinder, c Command, lifts []Lift, set func() *seeds.Set) (*Retry, error) {
	r := &Retry{command: c, done: make(chan struct{})}
	r.at, r.below, r.most = storage.Position{Host: c.Host, Ordinal: c.Ordinal}, unbounded, MostChanged
	r.changed.Store(c.Back)
	r.encode = func() []byte {
		c := r.command
		c.Host, c.Ordinal, c.Back = r.at.Host, r.at.Ordinal, r.changed.Load()
		return c.Encode()
	}
	selects := func(l *storage.Located) bool {
		return slices.ContainsFunc(lifts, func(x Lift) bool { return x.states.Has(l.Last.State) && x.lifts(l) })
	}
	if c.Selection == nil {
		isOther := func(l Lift) bool { return !slices.Contains(c.Lifted, l.setting) }
		lifts = slices.DeleteFunc(slices.Clone(lifts), isOther)
		for i := range lifts {
			r.states |= lifts[i].states
		}
	} else {
		r.states, r.lost = c.Selection.states(), c.Selection.Fetched
		selects = func(l *storage.Located) bool {
			return c.Selection.selects(l) && (c.Selection.IsAll() || c.Selection.PagesOf.Selects(set(), l))
		}
	}
	r.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		if !selects(l) {
			return storage.Done{}, false
		}
		if r.leaves() {
			return changeTo(l, r.states, frontier.LeaveOut(l.Last, now)), true
		}
		d := PutBack(l.Host.ID, &l.Head, now)
		if len(r.lost) > 0 {
			d.Outcome.Bytes, d.Outcome.ETag, d.Outcome.Modified = 0, "", "" // there is nothing to compare with
		}
		return d, true
	}
	if c.Selection == nil || c.Selection.Host == "" {
		return r, nil
	}
	h, err := s.HostByName(inspect.CanonicalHost(c.Selection.Host))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("host %s: %w", c.Selection.Host, inspect.ErrUnknown)
	}
	r.host, r.at.Host = h.ID, max(c.Host, h.ID)
	return r, err
}

// leaves reports whether it leaves URLs out.
func (r *Retry) leaves() bool { return r.command.Selection != nil && r.command.Selection.Drop }

// Begin makes it the n-th retry and returns its sweep. The end is logged.
func (r *Retry) Begin(n uint64, log *slog.Logger) *Sweep { return r.withMark(RetryMark(n), log) }

func (r *Retry) withMark(mark string, log *slog.Logger) *Sweep {
	r.mark = mark
	r.ended = func(*frontier.Frontier, time.Time) {
		close(r.done)
		if p := r.Progress(); r.leaves() {
			log.Info("URLs are left out", "looked_at", p.Inspected, "left_out", p.Dropped)
		} else {
			log.Info("URLs are put back into their queues", "looked_at", p.Inspected, "put_back", p.Back)
		}
	}
	return &r.Sweep
}

// Done is closed when the end is on disk.
func (r *Retry) Done() <-chan struct{} { return r.done }

// Progress returns how far it has come. Any goroutine may call it.
func (r *Retry) Progress() Retried {
	if r.leaves() {
		return Retried{Inspected: r.inspected.Load(), Dropped: r.changed.Load()}
	}
	return Retried{Inspected: r.inspected.Load(), Back: r.changed.Load()}
}

// PutBack puts a URL back into its queue, if it is still in the state in which it was read.
func PutBack(host storage.HostID, h *storage.Head, now time.Time) storage.Done {
	return storage.Done{
		Host: host, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority,
		When: storage.In(h.Last.State), Outcome: frontier.PutBack(h.Last, now),
	}
}

// RetryMark returns the name of the mark of the n-th retry.
func RetryMark(n uint64) string { return fmt.Sprintf("%s%d", MarkRetry, n) }

// LastRetry returns the greatest number of a retry that has a mark; 0: there is none.
func LastRetry(s markReader) (last uint64, err error) {
	marks, err := s.Marks(MarkRetry)
	for name := range marks {
		var n uint64
		if _, err := fmt.Sscanf(name, MarkRetry+"%d", &n); err != nil {
			return 0, fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		last = max(last, n)
	}
	return last, err
}

func (s *Source) openRetry(name string, value []byte, lifts []Lift) (*Sweep, error) {
	var c Command
	if err := json.Unmarshal(value, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	r, err := NewRetry(s.Store, c, lifts, func() *seeds.Set { return s.Scope().Seeds() })
	if err != nil {
		return nil, err
	}
	return r.withMark(name, s.Log), nil
}
