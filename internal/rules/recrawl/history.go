package recrawl

import (
	"encoding/binary"
	"time"
)

// History is the memory of a page between visits, in 8 bytes. The first byte says how the page was
// planned; its forms are
//
//	0          empty
//	1..84      by the index, with the estimated time between changes as a level
//	85..168    the same, and a notice has brought the visit forward
//	169..252   not planned: the visits since the last response failed, for as long as the level says
//	253        by a plain policy, with the interval in seconds in bytes 4 to 7
//	254        the same, and a notice has brought the visit forward
//	255        the same, but without a planned visit
//
// For all but plain policies, bytes 1 to 7 are observations, the newest first:
//
//	0          none
//	1..84      no change for as long as the level says
//	85..168    a change, some time within as long as the level says
//	169..252   a change, as long ago as the level says
//
// The database stores it unchanged, so a change of its meaning is a change of the database's
// format.
type History [8]byte

// The first value of each range, in the first byte and in observations.
const (
	byIndex  = 1
	noticed  = byIndex + levels
	deferred = noticed + levels

	plain          = 253
	plainNoticed   = 254
	plainUnplanned = 255

	unchanged = 1
	changed   = unchanged + levels
	exact     = changed + levels
)

// observations is the number of observations in a History.
const observations = 7

// indexed reports whether the page is planned by the index.
func (h History) indexed() bool { return h[0] >= byIndex && h[0] < deferred }

// isPlain reports whether a plain policy wrote the history.
func (h History) isPlain() bool { return h[0] >= plain }

// Planned reports whether the page has a planned visit that counts against the budget.
func (h History) Planned() bool { return h.indexed() || h[0] == plain || h[0] == plainNoticed }

// Noticed reports whether a notice has brought the visit forward.
func (h History) Noticed() bool { return h[0] >= noticed && h[0] < deferred || h[0] == plainNoticed }

// level returns the estimated time between changes of a page planned by the index, as a level.
func (h History) level() uint8 { return (h[0] - byIndex) % levels }

// interval returns the interval of a plain policy.
func (h History) interval() time.Duration {
	return time.Duration(binary.BigEndian.Uint32(h[4:])) * time.Second
}

// plainHistory returns the history of a page with an interval of a plain policy.
func plainHistory(interval time.Duration) (h History) {
	h[0] = plain
	binary.BigEndian.PutUint32(h[4:], uint32(interval/time.Second))
	return h
}

// observed reports whether there is an observation of how the page changes.
func (h History) observed() bool { return !h.isPlain() && h[1] != 0 }

// awaited returns the seconds from the last response to the last attempt, if that failed.
func (h History) awaited() float64 {
	if h[0] < deferred || h.isPlain() {
		return 0
	}
	return levelSeconds(h[0] - deferred)
}

// Defer returns the history after an attempt that failed, at a time in seconds after the one
// before. The page is no longer planned.
func (h History) Defer(seconds float64) History {
	switch {
	case h.isPlain():
		h[0] = plainUnplanned
	case h != History{}:
		h[0] = deferred + levelOf(h.awaited()+max(seconds, 0))
	}
	return h
}

// planned returns the history of a page that the index has planned.
func (h History) planned(meanSeconds float64) History {
	h[0] = byIndex + levelOf(meanSeconds)
	return h
}

// observe adds an observation. If there is no room left, it joins two visits in a row without a
// change to one over both their times: the two most alike ones, because a short time would be lost
// in the rounding of a long one. If there are no such two, the oldest observation is dropped.
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

// Rate returns the estimate that the page was planned by, or false if there was none.
func (h History) Rate() (Rate, bool) {
	if !h.indexed() {
		return 0, false
	}
	return Rate(1 / levelSeconds(h.level())), true
}
