package politeness

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func newHours(t *testing.T, zone string, items ...string) *Hours {
	t.Helper()
	return must.Get(NewHours(zone, items, "politeness.hours"))(t)
}

// TestHours: when a host may be fetched from next, also where the clocks change: in Berlin on 29
// March 2026 from 02:00 to 03:00, and on 25 October from 03:00 back to 02:00.
func TestHours(t *testing.T) {
	const berlin = "Europe/Berlin"
	tests := []struct {
		name, zone, items string
		at, since, until  string // UTC; since "": it is open
	}{
		{"utc, closed", "", "22:00-06:00", "2026-11-20 12:00", "2026-11-20 06:00", "2026-11-20 22:00"},
		{"utc, opens", "", "22:00-06:00", "2026-11-20 22:00", "", ""},
		{"utc, over midnight", "", "22:00-06:00", "2026-11-21 05:59", "", ""},
		{"utc, closes", "", "22:00-06:00", "2026-11-21 06:00", "2026-11-21 06:00", "2026-11-21 22:00"},
		{"zone in winter", berlin, "22:00-06:00", "2026-11-20 12:00", "2026-11-20 05:00", "2026-11-20 21:00"},
		{"zone in summer", berlin, "22:00-06:00", "2026-07-20 12:00", "2026-07-20 04:00", "2026-07-20 20:00"},
		{"whole day", berlin, "00:00-24:00", "2026-07-20 12:00", "", ""},
		{"the same time twice", berlin, "06:00-06:00", "2026-07-20 03:00", "", ""},
		{"half an hour off", "Asia/Kolkata", "06:00-07:00", "2026-07-20 12:00", "2026-07-20 01:30", "2026-07-21 00:30"},

		// a Friday
		{"other day", "", "mon-fri 08:00-10:00", "2026-11-20 12:00", "2026-11-20 10:00", "2026-11-23 08:00"},
		{"days alone", berlin, "sat,sun", "2026-11-20 12:00", "2026-11-15 23:00", "2026-11-20 23:00"},
		{"one day", "", "thu 12:00-13:00", "2026-11-20 12:00", "2026-11-19 13:00", "2026-11-26 12:00"},
		{"the night of a day", "", "fri 22:00-06:00", "2026-11-21 05:00", "", ""},
		{"the night before a day", "", "fri 22:00-06:00", "2026-11-20 05:00", "2026-11-14 06:00", "2026-11-20 22:00"},
		{"days over the weekend", "", "sat-mon 01:00-02:00", "2026-11-20 12:00", "2026-11-16 02:00",
			"2026-11-21 01:00"},
		{"two items", "", "03:00-04:00 | 13:00-14:00", "2026-11-20 12:00", "2026-11-20 04:00", "2026-11-20 13:00"},
		{"a day of an item", "", "fri 06:00-06:00", "2026-11-21 05:59", "", ""},

		{"spring, before", berlin, "04:00-05:00", "2026-03-29 00:00", "2026-03-28 04:00", "2026-03-29 02:00"},
		{"spring, after", berlin, "00:00-01:00", "2026-03-29 02:00", "2026-03-29 00:00", "2026-03-29 22:00"},
		{"spring, an hour that is left out", berlin, "02:00-03:00", "2026-03-28 23:00", "2026-03-28 02:00",
			"2026-03-30 00:00"},
		{"spring, half of it", berlin, "02:30-03:30", "2026-03-28 23:00", "2026-03-28 02:30", "2026-03-29 01:00"},
		{"spring, cut off", berlin, "01:30-02:30", "2026-03-29 01:00", "2026-03-29 01:00", "2026-03-29 23:30"},
		{"autumn, before", berlin, "04:00-05:00", "2026-10-25 00:00", "2026-10-24 03:00", "2026-10-25 03:00"},
		{"autumn, first time", berlin, "02:30-02:45", "2026-10-25 00:30", "", ""},
		{"autumn, between", berlin, "02:30-02:45", "2026-10-25 00:50", "2026-10-25 00:45", "2026-10-25 01:30"},
		{"autumn, second time", berlin, "02:30-02:45", "2026-10-25 01:30", "", ""},
		{"autumn, again from the change on", berlin, "02:00-02:30", "2026-10-25 00:40", "2026-10-25 00:30",
			"2026-10-25 01:00"},
		{"autumn, after", berlin, "02:30-02:45", "2026-10-25 01:50", "2026-10-25 01:45", "2026-10-26 01:30"},
	}
	parse := func(text string) time.Time {
		return must.Get(time.Parse("2006-01-02 15:04", text))(t)
	}
	for _, tt := range tests {
		o := DefaultOptions()
		o.Hours = newHours(t, tt.zone, strings.Split(tt.items, "|")...)
		now := parse(tt.at)
		e := NewHost(&o, State{}, now).Explain(now)
		if tt.since == "" {
			assert.True(t, e.Reason == ReasonNone && !e.Until.After(now), "%s: %v", tt.name, e)
			continue
		}
		assert.True(t, e.Reason == ReasonHours && e.Since.Equal(parse(tt.since)) && e.Until.Equal(parse(tt.until)) &&
			!e.Parked, "%s: %v, want from %s to %s", tt.name, e, tt.since, tt.until)
	}
}

// The next opening is the first minute at which the clocks of the zone show an allowed time.
func TestHoursMinuteByMinute(t *testing.T) {
	for _, change := range []string{"2026-03-29", "2026-10-25"} {
		for _, items := range [][]string{{"02:30-03:30"}, {"sun 01:15-02:15", "22:00-00:30"}, {"sat 23:00-02:30"}} {
			start, _ := time.Parse(time.DateOnly, change)
			hours := newHours(t, "Europe/Berlin", items...)
			opens := time.Time{}
			for i := 4 * 24 * 60; i >= -36*60; i-- {
				now := start.Add(time.Duration(i) * time.Minute)
				next, since, wait := nextOpen(hours.allowed, now)
				local := now.In(hours.zone)
				allowed := false
				for _, s := range hours.allowed {
					minute := uint16(local.Hour()*60 + local.Minute())
					today, yesterday := s.on(int(local.Weekday())), s.on(int(local.Weekday())-1)
					if s.From < s.To {
						allowed = allowed || today && minute >= s.From && minute < s.To
					} else {
						allowed = allowed || today && minute >= s.From || yesterday && minute < s.To
					}
				}
				must.True(t, allowed == (next < 0), "%v at %v: open %t, want %t", items, local, next < 0, allowed)
				if allowed {
					opens = now
				} else if !opens.IsZero() && !now.Add(wait).Equal(opens) {
					t.Fatalf("%v at %v: opens at %v, want %v", items, local, now.Add(wait), opens)
				}
				if before, _, _ := nextOpen(hours.allowed, now.Add(-since-1)); !allowed && before >= 0 {
					t.Fatalf("%v at %v: closed before %v", items, local, now.Add(-since))
				}
			}
		}
	}
}

func TestHoursExplained(t *testing.T) {
	o := DefaultOptions()
	o.Hours = newHours(t, "Europe/Berlin", "sat,sun", " mon-fri  22:00-06:00 ")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h := NewHost(&o, State{}, now)
	want :=
		"not before 2026-11-20 21:00:00.000 UTC, since 2026-11-20 05:00:00.000 UTC: outside of the hours that the " +
			"operator allows (politeness.hours: mon-fri 22:00-06:00 Europe/Berlin); 1s between requests (the " +
			"configured delay)"
	assert.Equal(t, h.Explain(now).String(), want)
	h.Ended(now.Add(20*time.Hour), Result{RetryAfter: 48 * time.Hour}) // until Monday 08:00 UTC
	e := h.Explain(now)
	assert.True(t, e.Reason == ReasonHours && e.Until.Equal(time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)), "%v", e)
}

// The hours of the operator and a Visit-time have to allow a request. If they have no hour in
// common, the host is parked.
func TestHoursAndVisitTime(t *testing.T) {
	o := DefaultOptions()
	o.Hours = newHours(t, "", "22:00-06:00")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h := NewHost(&o, State{}, now)
	h.SetDemands(Demands{Visits: []Visit{{hours(400, 800), Line{0, 3}}}})
	if e := h.Explain(now); !e.Until.Equal(now.Add(16*time.Hour)) || e.Reason != ReasonVisitTime {
		t.Error(e)
	}
	h.SetDemands(Demands{Visits: []Visit{{hours(700, 800), Line{0, 3}}}})
	e := h.Explain(now)
	assert.True(t, e.Parked && e.Reason == ReasonHours &&
		strings.Contains(e.String(), "politeness.hours: no hour in common with the Visit-time of its robots.txt"), "%v",
		e)
	for at := now; at.Before(e.Until.Add(24 * time.Hour)); at = at.Add(13 * time.Minute) {
		must.True(t, h.Ready(at).After(at), "ready at %v", at)
	}
}

func TestNewHoursRefuses(t *testing.T) {
	for _, item := range []string{"", "22-06", "22:00", "22:00-", "22:0-06:00", "25:00-06:00", "24:00-06:00",
		"22:60-06:00",
		"-22:00-06:00", "mon", "xyz 22:00-06:00", "mon- 22:00-06:00", "mon,, 22:00-06:00",
		"mon 22:00-06:00 x", "mon fri",
		"22:00-06:00 mon", "22:00 - 06:00", "22:00-24:01"} {
		_, err := NewHours("", []string{item}, "")
		assert.True(t, (item == "mon") == (err == nil) && (err == nil || errors.Is(err, ErrOption)), "%q: %v", item,
			err)
	}
	assert.Fails(NewHours("Europe/Nowhere", nil, ""))(t, ErrOption)
	assert.Fails(NewHours("", make([]string, MaxHours+1), ""))(t, ErrOption)
	h, err := NewHours("UTC", nil, "")
	assert.True(t, h == nil && err == nil, "%v %v", h, err)
}

func ExampleNewHours() {
	hours, err := NewHours("Europe/Berlin", []string{"mon-fri 22:00-06:00", "sat,sun"}, "hours")
	if err != nil {
		fmt.Println(err)
		return
	}
	o := DefaultOptions()
	o.Hours = hours
	now := time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC)
	fmt.Println(NewHost(&o, State{}, now).Ready(now))
	// Output: 2026-07-20 20:00:00 +0000 UTC
}
