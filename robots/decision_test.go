package robots

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestDecisionFirst(t *testing.T) {
	assert.Equal(t, DefaultOptions().Decide(Record{}, hour, begin), (Decision{Kind: DecisionFetch}),
		"a file never fetched")
}

// TestDecisionLifetime covers the life of a good file, with and without a delay in force.
func TestDecisionLifetime(t *testing.T) {
	o := DefaultOptions()
	r := good()
	ahead := r.Refresh.Sub(begin)
	tests := []struct {
		name       string
		slack, age time.Duration
		kind       DecisionKind
		refresh    bool
	}{
		{"new", 0, 0, DecisionMatch, false},
		{"before the refresh", 0, ahead - 1, DecisionMatch, false},
		{"refresh due", 0, ahead, DecisionMatch, true},
		{"at the end", 0, day - 1, DecisionMatch, true},
		{"over", 0, day, DecisionFetch, false},
		{"slack moves the refresh", hour, ahead, DecisionMatch, false},
		{"and it comes", hour, ahead + hour, DecisionMatch, true},
		{"slack moves the end", hour, day, DecisionMatch, true},
		{"and it comes", hour, day + hour, DecisionFetch, false},
		{"negative slack is none", -hour, day - 1, DecisionMatch, true},
		{"a clock set back a little", 0, -minute, DecisionMatch, false},
		{"a clock set back a day", 0, -day, DecisionFetch, false},
	}
	for _, tt := range tests {
		s := o.Decide(r, tt.slack, begin.Add(tt.age))
		assert.True(t, s.Kind == tt.kind && s.RefreshDue == tt.refresh && s.Reason == ReasonNone, "%s: %+v", tt.name, s)
		assert.True(t, s.Kind != DecisionMatch || s.Until.Equal(begin.Add(day+max(tt.slack, 0))), "%s: until %v",
			tt.name, s.Until)
	}
}

// TestDecisionPhases covers the phases of a file that became unreachable an hour after it was
// fetched.
func TestDecisionPhases(t *testing.T) {
	o := DefaultOptions()
	tests := []struct {
		name string
		age  time.Duration // of the copy
		kind DecisionKind
	}{
		{"the copy is young", 2 * hour, DecisionMatch},
		{"just under a day", day - 1, DecisionMatch},
		{"complete disallow begins", day, DecisionHold},
		{"just under 12 hours of it", day + 12*hour - 1, DecisionHold},
		{"the last good copy again", day + 12*hour, DecisionMatch},
		{"after ten days", 10 * day, DecisionMatch},
		{"after 30 days", 31*day + hour, DecisionMatch},
		{"after a year", 365 * day, DecisionMatch},
	}
	for _, tt := range tests {
		r := good()
		for _, failed := range []time.Duration{hour, tt.age} { // the first failure, and the latest just now
			r, _ = o.Next(r, response(500, "", Header{}), begin.Add(failed))
		}
		s := o.Decide(r, 0, begin.Add(tt.age))
		assert.Equal(t, s.Kind, tt.kind, tt.name, s)
		assert.True(t, s.Kind != DecisionHold || s.Reason == ReasonUnreachable && s.Until.Equal(r.Refresh), "%s: %+v",
			tt.name, s)
		assert.True(t, !s.RefreshDue, "%s: fetched again before the backoff is over: %+v", tt.name, s)
		v := r.Rules("amble").Match("/private")
		assert.True(t, !v.Allowed && v.Reason == ReasonRule, "%s: the rules of the copy are lost: %+v", tt.name, v)
		s = o.Decide(r, 0, r.Refresh)
		assert.True(t, s.Kind == DecisionFetch || s.RefreshDue, "%s: not fetched again at the end of the backoff: %+v",
			tt.name, s)
	}
}

// TestDecisionLateFailure lets the copy lapse while the file is not fetched: the disallow begins
// with the failure.
func TestDecisionLateFailure(t *testing.T) {
	o := DefaultOptions()
	late := begin.Add(5 * day)
	r, _ := o.Next(good(), response(500, "", Header{}), late)
	assert.Equal(t, o.Decide(r, 0, late).Kind, DecisionHold)
	r, _ = o.Next(r, response(500, "", Header{}), late.Add(12*hour))
	assert.Equal(t, o.Decide(r, 0, late.Add(12*hour)).Kind, DecisionMatch, "after 12 hours")
}

// TestDecisionWithoutCopy has no good file to fall back to: it was never fetched, or did not exist.
func TestDecisionWithoutCopy(t *testing.T) {
	o := DefaultOptions()
	missing, _ := o.Next(Record{}, response(404, "", Header{}), begin)
	page, _ := o.Next(Record{}, response(200, "<html>", Header{}), begin)
	for name, before := range map[string]Record{"never": {}, "404": missing, "page": page} {
		r, _ := o.Next(before, response(500, "", Header{}), begin.Add(hour))
		s := o.Decide(r, 0, begin.Add(hour))
		known := before.Class != ClassNone
		assert.True(t, (!known || s.Kind == DecisionMatch && r.Rules("x").Match("/").Allowed) &&
			(known || s.Kind == DecisionHold), "%s: within a day %+v", name, s)
		for _, age := range []time.Duration{day, 2 * day, 10 * day, 29 * day} {
			r, _ = o.Next(r, response(500, "", Header{}), begin.Add(age))
			s := o.Decide(r, 0, begin.Add(age))
			assert.True(t, s.Kind == DecisionHold && s.Reason == ReasonUnreachable, "%s: after %v %+v", name, age, s)
		}
		out := response(500, "", Header{})
		still, _ := o.Next(r, out, begin.Add(32*day))
		assert.Equal(t, o.Decide(still, 0, begin.Add(32*day)).Kind, DecisionHold, name,
			"after 30 days, from a host that does not respond")
		out.HostAnswers = true
		for _, age := range []time.Duration{32 * day, 33 * day, 40 * day} {
			r, _ = o.Next(r, out, begin.Add(age))
			s := o.Decide(r, 0, begin.Add(age))
			assert.True(t, s.Kind == DecisionMatch && s.Reason == ReasonUnavailable && r.Rules("x").Match("/").Allowed,
				"%s: after %v, from a host that responds: %+v", name, age, s)
			assert.True(t, !r.FirstUnreachable.IsZero() && r.Failures != 0 && r.Refresh.Before(begin.Add(age+2*hour)),
				"%s: the failures in a row are forgotten: %+v", name, r)
		}
		r, _ = o.Next(r, response(200, string(rulesBody), Header{}), begin.Add(41*day))
		assert.True(t, !r.Rules("x").Match("/private").Allowed && r.Failures == 0, "%s: back again: %+v", name, r)
	}
}

func TestForgetCopy(t *testing.T) {
	o := DefaultOptions()
	o.ForgetCopy = true
	r := good()
	for _, age := range []time.Duration{hour, 20 * day, 32 * day} {
		r, _ = o.Next(r, response(500, "", Header{}), begin.Add(age))
	}
	s := o.Decide(r, 0, begin.Add(32*day))
	assert.True(t, s.Kind == DecisionMatch && s.Reason == ReasonUnavailable && r.Body == nil, "%+v, %+v", s, r)
}

// TestLongDelayStillFetchesPages: with a delay of a day between requests, at least every second
// request is for a page, and no page is fetched under rules older than delay plus lifetime.
func TestLongDelayStillFetchesPages(t *testing.T) {
	o := DefaultOptions()
	for _, delay := range []time.Duration{hour, 20 * hour, day, 3 * day, 100 * day} {
		for name, status := range map[string]int{"reachable": 200, "unreachable": 500} {
			r, now, pages, robots := good(), begin, 0, 0
			for range 200 {
				now = now.Add(delay + time.Second)
				s := o.Decide(r, delay, now)
				if s.Kind != DecisionMatch || s.RefreshDue {
					robots++
					r, _ = o.Next(r, response(status, string(rulesBody), Header{}), now)
					continue
				}
				pages++
				if age := now.Sub(r.Fetched); status == 200 && age > max(day, delay+r.Expires.Sub(r.Fetched)) {
					t.Fatalf("%v: a page under rules that are %v old", delay, age)
				}
			}
			assert.True(t, pages >= robots-2 || status == 500 && delay == hour,
				"delay %v, %s: %d pages, %d times robots.txt", delay, name, pages, robots)
		}
	}
}

// TestDecisionBadClock: times in the future, as after a clock was set back, do not hold an origin
// for long.
func TestDecisionBadClock(t *testing.T) {
	o := DefaultOptions()
	r, _ := o.Next(Record{}, response(503, "", Header{RetryAfter: "7200"}), begin.Add(1000*day))
	assert.Equal(t, o.Decide(r, 0, begin).Kind, DecisionFetch)
	r, _ = o.Next(r, response(503, "", Header{}), begin)
	assert.True(t, r.FirstUnreachable.Equal(begin), "first unreachable in the future: %v", r.FirstUnreachable)
}

func TestValidate(t *testing.T) {
	must.Do(t, DefaultOptions().Validate())
	for name, spoil := range map[string]func(*Options){
		"redirects":     func(o *Options) { o.MaxRedirects = 4 },
		"lifetime":      func(o *Options) { o.MaxLifetime = 25 * hour },
		"order":         func(o *Options) { o.MinLifetime = 25 * hour },
		"zero":          func(o *Options) { o.MinLifetime = 0 },
		"no cache":      func(o *Options) { o.NoCacheLifetime = 25 * hour },
		"no robots":     func(o *Options) { o.NotRobotsLifetime = 0 },
		"retry":         func(o *Options) { o.MinRetry = 0 },
		"retry order":   func(o *Options) { o.MaxRetry = time.Second },
		"retry after":   func(o *Options) { o.MaxRetryAfter = time.Second },
		"disallow":      func(o *Options) { o.DisallowFor = -1 },
		"undefined":     func(o *Options) { o.UndefinedAfter = 0 },
		"empty options": func(o *Options) { *o = Options{} },
	} {
		o := DefaultOptions()
		if spoil(&o); o.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A record made under the other value of ForbiddenDenies is not in force: the file is fetched
// again.
func TestDecisionForbiddenChanged(t *testing.T) {
	strict := DefaultOptions()
	strict.ForbiddenDenies = true
	for _, status := range []int{401, 403, 404} {
		out := Outcome{URL: "https://example.com/robots.txt", Status: status}
		for _, tt := range []struct {
			name        string
			made, read  Options
			kind, of404 DecisionKind
		}{
			{"lenient", DefaultOptions(), DefaultOptions(), DecisionMatch, DecisionMatch},
			{"strict", strict, strict, DecisionHold, DecisionMatch},
			{"lenient to strict", DefaultOptions(), strict, DecisionFetch, DecisionMatch},
			{"strict to lenient", strict, DefaultOptions(), DecisionFetch, DecisionMatch},
		} {
			want := tt.kind
			if status == 404 {
				want = tt.of404
			}
			record, _ := tt.made.Next(Record{}, out, begin)
			assert.Equal(t, tt.read.Decide(record, 0, begin.Add(minute)).Kind, want, tt.name, "status", status)
		}
	}
}
