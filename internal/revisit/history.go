package revisit

import (
	"encoding/binary"
	"time"
)

// History is what is remembered of a page between visits. The first byte says how it was
// planned; its forms are
//
//	0          nothing is remembered
//	1..84      by the index, with the estimated time between changes as a level
//	85..168    the same, and a notice has brought the visit forward
//	169..252   not planned: the visits since the last answer failed, for as long as the level says
//	253        by a plain policy, with the interval in seconds in bytes 4 to 7
//	254        the same, and a notice has brought the visit forward
//	255        the same, but not planned at the moment
//
// For all but plain policies, bytes 1 to 7 are observations, the newest first:
//
//	0          none
//	1..84      no change for as long as the level says
//	85..168    a change, some time within as long as the level says
//	169..252   a change, as long ago as the level says
//
// It is stored as it is, so that a change of its meaning is a change of the store's format.
type History [8]byte

// What the first byte, and each observation, begins to count from.
const (
	byIndex  = 1
	noticed  = byIndex + levels
	deferred = noticed + levels

	plain        = 253
	plainNoticed = 254
	plainUnplanned    = 255

	unchanged = 1
	changed   = unchanged + levels
	exact     = changed + levels
)

// observations are how many a History has room for.
const observations = 7

// indexed reports whether the page is planned by the index.
func (h History) indexed() bool { return h[0] >= byIndex && h[0] < deferred }

// isPlain reports whether a plain policy wrote the history.
func (h History) isPlain() bool { return h[0] >= plain }

// Planned reports whether the page has a visit to come that counts against the budget.
func (h History) Planned() bool { return h.indexed() || h[0] == plain || h[0] == plainNoticed }

// Noticed reports whether a notice has brought the visit forward.
func (h History) Noticed() bool { return h[0] >= noticed && h[0] < deferred || h[0] == plainNoticed }

// level is the estimated time between changes of a page planned by the index.
func (h History) level() uint8 { return (h[0] - byIndex) % levels }

// interval is that of a plain policy.
func (h History) interval() time.Duration {
	return time.Duration(binary.BigEndian.Uint32(h[4:])) * time.Second
}

// plainHistory is that of a page with an interval of a plain policy.
func plainHistory(interval time.Duration) (h History) {
	h[0] = plain
	binary.BigEndian.PutUint32(h[4:], uint32(interval/time.Second))
	return h
}

// observed reports whether anything is known of how the page changes.
func (h History) observed() bool { return !h.isPlain() && h[1] != 0 }

// awaited is how long ago the last answer was when the last attempt failed, in seconds.
func (h History) awaited() float64 {
	if h[0] < deferred || h.isPlain() {
		return 0
	}
	return levelSeconds(h[0] - deferred)
}

// deferBy is the history after an attempt that failed, so long after the one before.
// The page is no longer planned.
func (h History) deferBy(seconds float64) History {
	switch {
	case h.isPlain():
		h[0] = plainUnplanned
	case h != History{}:
		h[0] = deferred + levelOf(h.awaited()+max(seconds, 0))
	}
	return h
}

// planned is the history of a page that the index has planned.
func (h History) planned(meanSeconds float64) History {
	h[0] = byIndex + levelOf(meanSeconds)
	return h
}

// observe adds an observation. When there is no room left, two visits in a row without a change become
// one over both their times: the two that are most alike, because a short time would be lost in the rounding of a long one. Where
// there are no such two, the oldest observation goes.
func (h History) observe(kind uint8, seconds float64) History {
	if h.isPlain() {
		h = History{}
	}
	all := append([]byte{kind + levelOf(seconds)}, h[1:]...)
	if all[observations] != 0 {
		all = shorten(all)
	}
	copy(h[1:], all[:observations])
	return h
}

func shorten(all []byte) []byte {
	at, least := -1, levels
	for i := 0; i+1 < len(all); i++ {
		apart := max(int(all[i]), int(all[i+1])) - min(int(all[i]), int(all[i+1]))
		if all[i] < changed && all[i+1] < changed && apart <= least {
			at, least = i, apart
		}
	}
	if at < 0 {
		return all
	}
	all[at] = unchanged + levelOf(levelSeconds(all[at]-unchanged)+levelSeconds(all[at+1]-unchanged))
	return append(all[:at+1], all[at+2:]...)
}

// Observation is what one visit, or several without a change, said about a page.
type Observation struct {
	Change Change        // Same or Changed
	Span   time.Duration // within which that was so, roughly
	Dated  bool          // the change was as long ago as the span when it was seen, by the page's Last-Modified
}

// Observations are what is remembered of a page, the newest first.
func (h History) Observations() (all []Observation) {
	if h.isPlain() {
		return nil
	}
	for _, b := range h[1:] {
		span := func(from byte) time.Duration { return time.Duration(levelSeconds(b-from) * float64(time.Second)) }
		switch {
		case b == 0:
		case b >= exact:
			all = append(all, Observation{Change: Changed, Span: span(exact), Dated: true})
		case b >= changed:
			all = append(all, Observation{Change: Changed, Span: span(changed)})
		default:
			all = append(all, Observation{Change: Same, Span: span(unchanged)})
		}
	}
	return all
}

// Rate is the estimate by which the page was planned; false: it was not planned by one.
func (h History) Rate() (Rate, bool) {
	if !h.indexed() {
		return 0, false
	}
	return Rate(1 / levelSeconds(h.level())), true
}
