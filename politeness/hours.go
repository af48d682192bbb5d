package politeness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hours are the hours at which the operator allows requests to a host, by the clocks of a time
// zone. They are immutable.
type Hours struct {
	zone    *time.Location
	allowed []span
	texts   []string // of allowed
	setting string
}

// MaxHours is the number of items that [NewHours] takes.
const MaxHours = 32

// NewHours returns the hours that any of the items allows, or nil if there are none: all hours are
// allowed then. An item has days of the week, a time of the day, or both: "22:00-06:00",
// "sat,sun", "mon-fri 18:30-24:00". A time that goes over midnight belongs to the day on which it
// begins, and one that ends when it begins lasts a day. zone is a name of the IANA time zone
// database; "" is UTC. setting is the name of the items in the settings, for reports. An error
// names the item that cannot be used.
//
// A request is allowed when the clocks of the zone show an allowed time. So an hour that they leave
// out in spring is left out of the hours as well, and one that they show twice in autumn counts
// twice.
func NewHours(zone string, items []string, setting string) (*Hours, error) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("%w: no time zone %q is known", ErrOption, zone)
	}
	if len(items) > MaxHours {
		return nil, fmt.Errorf("%w: %d hours, allowed are at most %d", ErrOption, len(items), MaxHours)
	}
	if len(items) == 0 {
		return nil, nil
	}
	h := &Hours{zone: location, setting: setting}
	for _, item := range items {
		s, ok := parseSpan(item)
		if !ok {
			return nil, fmt.Errorf("%w: hours %q, want a time of the day such as 22:00-06:00, days such as mon-fri or "+
				"sat,sun before it, or days alone", ErrOption, item)
		}
		s.zone = location
		h.allowed, h.texts = append(h.allowed, s), append(h.texts, strings.Join(strings.Fields(item), " "))
	}
	return h, nil
}

// Equal reports whether both allow the same hours, as they are written.
func (h *Hours) Equal(o *Hours) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.zone.String() == o.zone.String() && slices.Equal(h.texts, o.texts)
}

// parseSpan reads an item of hours.
func parseSpan(item string) (s span, ok bool) {
	words := strings.Fields(strings.ToLower(item))
	if len(words) == 0 || len(words) > 2 {
		return s, false
	}
	clock := words[len(words)-1]
	if !strings.Contains(clock, ":") {
		s.days, ok = parseDays(clock)
		return s, ok && len(words) == 1
	}
	if len(words) == 2 {
		if s.days, ok = parseDays(words[0]); !ok {
			return s, false
		}
	}
	from, to, _ := strings.Cut(clock, "-")
	var fromOK, toOK bool
	s.From, fromOK = parseMinute(from)
	s.To, toOK = parseMinute(to)
	return s, fromOK && toOK && s.From < minutes
}

// parseMinute reads a time such as 6:00 or 24:00 as the minute of the day.
func parseMinute(text string) (uint16, bool) {
	hour, minute, _ := strings.Cut(text, ":")
	h, err := strconv.ParseUint(hour, 10, 8)
	m, alsoErr := strconv.ParseUint(minute, 10, 8)
	ok := err == nil && alsoErr == nil && len(hour) <= 2 && len(minute) == 2 && m < 60 && h*60+m <= minutes
	return uint16(h*60 + m), ok
}

// parseDays reads days such as sat,sun or mon-fri.
func parseDays(text string) (days uint8, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, last := parseDay(from), parseDay(to)
		if first < 0 || last < 0 {
			return 0, false
		}
		for d := first; ; d = (d + 1) % 7 {
			days |= 1 << d
			if d == last {
				break
			}
		}
	}
	return days, true
}

// parseDay returns the number of a day from Sunday on, as time.Weekday; -1: it is none.
func parseDay(text string) int {
	return slices.Index([]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, text)
}

// next returns the wait for the next allowed hour, or w if the instant lies in one. The wall clock
// shows now.
func (h *Hours) next(w wait, at, now time.Time) wait {
	if h == nil {
		return w
	}
	next, since, opens := nextOpen(h.allowed, wall(at, now))
	if next < 0 {
		return w
	}
	return wait{reason: ReasonHours, since: at.Add(-since), until: at.Add(opens), length: since + opens,
		header: h.setting + ": " + h.texts[next] + " " + h.zone.String()}
}

// span is a Window on some days of the week, by the clocks of a time zone. A window that goes over
// midnight belongs to the day on which it opens.
type span struct {
	Window
	days uint8          // bit 0 is Sunday; 0: every day
	zone *time.Location // nil: UTC
}

// nextOpen returns the index of the span that opens next after a time of the wall clock, for how
// long all have been closed, and how long until it opens; -1: one is open.
func nextOpen(spans []span, at time.Time) (next int, since, opens time.Duration) {
	next = -1
	for i, s := range spans {
		if s.open(at) {
			return -1, 0, 0
		}
		closed, d := at.Sub(s.closed(at)), s.opens(at).Sub(at)
		if next < 0 || closed < since {
			since = closed
		}
		if next < 0 || d < opens {
			next, opens = i, d
		}
	}
	return next, since, opens
}

// reading returns what the clocks of the zone show: the day of the week and the time since
// midnight.
func (s span) reading(at time.Time) (local time.Time, weekday int, ofDay time.Duration) {
	local = at.UTC()
	if s.zone != nil {
		local = at.In(s.zone)
	}
	hour, minute, second := local.Clock()
	ofDay = time.Duration(hour*3600+minute*60+second)*time.Second + time.Duration(local.Nanosecond())
	return local, int(local.Weekday()), ofDay
}

// on reports whether the window opens on a day of the week.
func (s span) on(weekday int) bool { return s.days == 0 || s.days>>((weekday+7)%7)&1 != 0 }

// bounds returns when the window opens and closes, from the midnight before it opens.
func (s span) bounds() (from, to time.Duration) {
	w := s.valid()
	from, to = time.Duration(w.From%minutes)*time.Minute, time.Duration(w.To)*time.Minute
	if to <= from {
		to += day
	}
	return from, to
}

// open reports whether the window is open at a time of the wall clock.
func (s span) open(at time.Time) bool {
	_, weekday, ofDay := s.reading(at)
	from, to := s.bounds()
	return s.on(weekday) && ofDay >= from && ofDay < to || s.on(weekday-1) && ofDay+day < to
}

// maxShifts bounds the changes of a zone's offset that a search passes. A zone has a few a year.
const maxShifts = 8

// opens returns when a window that is closed at a time of the wall clock opens next. Readings of
// the clock tell how long that is until the offset of the zone changes; from there on it is found
// again.
func (s span) opens(at time.Time) time.Time {
	from, _ := s.bounds()
	for range maxShifts {
		local, weekday, ofDay := s.reading(at)
		k := 0
		for ; k < 7 && !(s.on(weekday+k) && time.Duration(k)*day+from > ofDay); k++ {
		}
		next := at.Add(time.Duration(k)*day + from - ofDay)
		_, shift := local.ZoneBounds()
		if shift.IsZero() || next.Before(shift) {
			return next
		}
		if at = shift; s.open(at) {
			break
		}
	}
	return at
}

// closed returns when a window that is closed at a time of the wall clock closed last.
func (s span) closed(at time.Time) time.Time {
	_, to := s.bounds()
	for range maxShifts {
		local, weekday, ofDay := s.reading(at)
		k := 0
		for ; k < 8 && !(s.on(weekday-k) && to-time.Duration(k)*day <= ofDay); k++ {
		}
		last := at.Add(to - time.Duration(k)*day - ofDay)
		shift, _ := local.ZoneBounds()
		if shift.IsZero() || !last.Before(shift) {
			return last
		}
		if at = shift.Add(-1); s.open(at) {
			return shift
		}
	}
	return at
}

// untilClosed returns how long a window that is open at a time of the wall clock in UTC stays open;
// false: it never closes.
func (s span) untilClosed(at time.Time) (time.Duration, bool) {
	_, _, ofDay := s.reading(at)
	from, to := s.bounds()
	if ofDay < from {
		ofDay += day
	}
	return to - ofDay, to-from < day
}
