package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// A host that has put up a wall (internal/rules/wall) is fetched from once in each period of its backoff. A
// response of the wall uses up no attempt: the URL is due again at once, behind those that are due
// already. Every other probe is of one page that answered before the wall, the first one included, and the rest are of
// other URLs each: that page may be gone for good, and others may never have been open.

// WallBegun says that a host has put up a wall. Its owner puts the URLs back into the queue whose
// outcome is that of the wall: it is not older than Since, and Kind covers its status. The URLs of
// wall.KindSame have its Document.
type WallBegun struct {
	Host  storage.HostID
	Name  string // of the host
	Kind  wall.Kind
	Maker uint8 // the number of the wall, as of wall.Mark; 0: unknown
	Since time.Time
	// Document is of wall.KindSame: that of the URLs, as wall.DocumentOf of their digest.
	Document uint16
}

// TakeWalls returns the walls that have begun since the last call.
func (f *Frontier) TakeWalls() []WallBegun {
	w := f.results.walls
	f.results.walls = nil
	return w
}

// observeWall takes what a response to a URL, whose last outcome is given, says about a wall, and sets what the signal
// of a response of a wall, or of what may be one, is. It reports whether the response is that of a wall.
func (rs *results) observeWall(h *host, r *RequestEnd, before *storage.Outcome) bool {
	a := h.active
	if !rs.o.Walls || !r.answered() {
		return false
	}
	if last := a.polite.LastEnd(); !last.IsZero() {
		r.Wall.Gap = r.End.Sub(last)
	}
	r.Wall.Again = before.State == storage.Retrying && before.Reason == storage.ReasonWall
	v := a.wall.Observe(r.End, r.Wall)
	switch {
	case v.Stand == wall.Begins:
		rs.beginWall(h, v)
		r.Signal = politeness.SignalWalled
	case v.Stand == wall.Walled && v.Sign != wall.SignPage && r.Wall.Status > 0: // without a response the host fails
		r.Signal = politeness.SignalWalled
	case v.Stand == wall.Suspected && v.MayRefuse() && r.Signal == politeness.SignalOK:
		r.Signal = politeness.SignalRefused
	}
	return v.Refuses()
}

// describeWall adds to the result of a request what politeness has to know of the wall.
func (h *host) describeWall(r *politeness.Result) {
	if r.Signal == politeness.SignalWalled {
		v := h.active.wall.Verdict()
		r.Wall, r.Parked = v.Kind.String(), v.Park
	}
}

// behindWall is the outcome of a URL whose response was that of a wall that stands since an instant. That of a page
// which answered before it stays what it was, so that the page is known by it.
func (b *base) behindWall(head *storage.Head, r *PageReport, since time.Time) storage.Outcome {
	o := PutBackFromWall(head.Last, b.dueTime(r.End))
	if head.Last.Answered() && isKnown(head.Last.At, since) {
		return o
	}
	o.At, o.Status, o.Note = r.End, r.Outcome.Status, r.Outcome.Note
	if head.Last.State == storage.Retrying {
		o.Attempts = head.Last.Attempts
	}
	return o
}

// isKnown reports whether an outcome is from before a wall.
func isKnown(last, since time.Time) bool {
	return !last.IsZero() && last.Before(since.Truncate(time.Second))
}

// PutBackFromWall returns the outcome that puts a URL back into its queue, due at an instant, because
// its last response was that of a wall.
func PutBackFromWall(last storage.Outcome, due time.Time) storage.Outcome {
	last.State, last.Reason, last.Line, last.Attempts, last.Due = storage.Retrying, storage.ReasonWall, 0, 0, due
	return last
}

// headsOf returns the most URLs of an origin in memory, of each kind. While a wall is suspected there
// are more to choose from.
func (b *base) headsOf(a *active) int {
	if a.wall.Suspects() {
		return 4 * b.o.Heads
	}
	return b.o.Heads
}

// takeNext takes the next URL of a queue. While a wall is suspected, one comes first whose response
// tells whether there is one: that was not refused yet, in a section that has something to tell. Every other probe
// is of a page that answered before. The rest are of URLs in a section that did, or at least in one that has not
// refused: if the wall is a mistake, or is gone, that shows at once. When it has ended, such pages come first too.
func (h *host) takeNext(q *originQueue) (storage.Head, queue.Kind) {
	w := &h.active.wall
	answered := func(requestURI string, _ time.Time) bool { return w.Answered(wall.Sections(requestURI)) }
	switch {
	case w.Recovers():
		return q.TakePreferred(answered)
	case !w.Suspects() && !w.Walled():
		return q.Take(h.active.newFirst())
	}
	v := w.Verdict()
	since := v.Since.Truncate(time.Second)
	prefer := func(tells func(section, top uint16) bool) queue.Prefers {
		return func(requestURI string, last time.Time) bool {
			return last.Before(since) && (w.Suspects() || last.IsZero()) && tells(wall.Sections(requestURI))
		}
	}
	if w.Suspects() {
		return q.TakePreferred(prefer(func(section, top uint16) bool { return !w.Exhausted(section, top) }))
	}
	lists := []queue.Prefers{
		prefer(w.Answered), prefer(func(section, top uint16) bool { return !w.Refused(section, top) }),
	}
	if v.Probes%2 == 0 {
		known := func(_ string, last time.Time) bool { return isKnown(last, since) }
		lists = append([]queue.Prefers{known}, lists...)
	}
	return q.TakePreferred(lists...)
}

// concludeWall judges a host that has no URLs left while a wall is suspected. If there is one, the URLs that it has
// refused come back with a commit.
func (s *scheduler) concludeWall(h *host, now instant) {
	a := h.active
	pending := a.inFlight + a.reading + a.uncommitted + len(a.busy) + len(a.jobs)
	if !s.o.Walls || pending > 0 || a.loading || h.isBlocked() || s.budgets.isOver(h) {
		return
	}
	at := s.time(now)
	v, begins := a.wall.Conclude(at)
	if !begins {
		return
	}
	s.results.beginWall(h, v)
	result := politeness.Result{Signal: politeness.SignalWalled, Jitter: s.jitter()}
	h.describeWall(&result)
	a.polite.Ended(at, result)
	s.results.update(h, at, 0, 0)
}

// beginWall records that a host has put up a wall.
func (rs *results) beginWall(h *host, v wall.Verdict) {
	rs.walls = append(rs.walls, WallBegun{
		Host: h.id, Name: h.active.name, Kind: v.Kind, Maker: v.Wall, Since: v.Since,
		Document: h.active.wall.Document(),
	})
}

// wallKind returns the kind of the wall that an active host is behind; KindNone: none.
func (a *active) wallKind() wall.Kind {
	if !a.wall.Walled() {
		return wall.KindNone
	}
	v := a.wall.Verdict()
	return v.Kind
}

// storedWallKind returns the kind of the wall that the stored politeness of a host names.
func storedWallKind(s *politeness.State) wall.Kind {
	for i := range s.Holds {
		if s.Holds[i].Reason == politeness.ReasonWall {
			return wall.ParseKind(s.Holds[i].Header)
		}
	}
	return wall.KindNone
}
