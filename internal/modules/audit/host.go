//go:build !core

package audit

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/manners"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// Host is the result of an audit for one host.
type Host struct {
	Host string `json:"host"`
	Counts
	First    time.Time `json:"first"` // when its first request began
	Last     time.Time `json:"last"`
	Smallest *Gap      `json:"smallest_gap,omitempty"` // between two requests with a delay in force; nil: none
	Versions []Version `json:"robots_versions"`        // the newest MaxVersions
	Older    int       `json:"older_robots_versions,omitempty"`
}

// Gap is the time from the end of one request to the start of the next.
type Gap struct {
	Seconds float64   `json:"seconds"`
	Delay   float64   `json:"delay_seconds"` // in force
	Reason  string    `json:"delay_reason"`
	Exact   bool      `json:"exact"` // false: by the wall clock
	At      time.Time `json:"at"`
}

// Version is a robots.txt that allowed pages.
type Version struct {
	Version string    `json:"version"` // the start of the SHA-256 of its body; empty: there was no file
	Class   string    `json:"class"`   // of the robots record
	Origin  string    `json:"origin"`
	First   time.Time `json:"first"` // when the first page that it allowed was requested
	Last    time.Time `json:"last"`
	Pages   uint64    `json:"pages"`

	version robots.Version
	origin  weburl.Origin
}

// MaxVersions is the number of versions of robots.txt files that a Host lists.
const MaxVersions = 16

// host is a Host with the state that its next request is compared with.
type host struct {
	Host
	judge   manners.Host[requestlog.Instant]
	seen    bool
	origin  weburl.Origin
	origins bool // the host has more than one origin

	probes int                // of a wall that failed in a row, the last requests for pages
	probed requestlog.Instant // the end of the last of them
	prober time.Time          // when its process began
}

// ledgerGrain is the precision of a request that is known only from the start ledger: its start is rounded down, the
// delay that was in force up.
const ledgerGrain = time.Millisecond

// delayOf returns the delay in force at a request, the least that it can have been.
func delayOf(q *requestlog.Request) time.Duration {
	if q.End.IsZero() && q.Delay > 0 {
		return q.Delay - ledgerGrain + 1
	}
	return q.Delay
}

// timesOf returns the times of a request.
func timesOf(q *requestlog.Request) manners.Request[requestlog.Instant] {
	return manners.Request[requestlog.Instant]{
		Start: q.StartedAt(), End: q.EndedAt(), Delay: delayOf(q), RetryAfter: q.RetryAfter,
	}
}

// gap compares a request with those before it.
func (h *host) gap(q *requestlog.Request, f *Finding) {
	times := timesOf(q)
	if q.End.IsZero() {
		times.Start = times.Start.Add(ledgerGrain)
	}
	v := h.judge.Judge(times)
	if f.HasGap, f.Gap, f.Exact = v.HasGap, v.Gap, v.Exact; !v.HasGap {
		return
	}
	if v.Overtaken {
		f.violated(ShortGap, fmt.Sprintf("another request began while this one was in flight, and the delay in "+
			"force was %v", v.Delay))
	}
	if v.Short {
		f.violated(ShortGap, fmt.Sprintf("%v after the end of the last request; the delay in force was %v (%s)%s",
			f.Gap, q.Delay, q.DelayReason, byClock(f.Exact)))
	}
	if v.Early > 0 {
		f.violated(EarlyReturn, fmt.Sprintf("%v before the time that its Retry-After or RateLimit named%s", v.Early,
			byClock(v.EarlyExact)))
	}
	if q.Delay > 0 && (h.Smallest == nil || f.Gap.Seconds() < h.Smallest.Seconds) {
		h.Smallest = &Gap{Seconds: f.Gap.Seconds(), Delay: q.Delay.Seconds(), Reason: q.DelayReason.String(),
			Exact: f.Exact, At: q.Start}
	}
}

func byClock(exact bool) string {
	if exact {
		return ""
	}
	return ", by the wall clock"
}

// The backoff of a wall after one probe that failed, at least, and after any number.
const firstProbe, lastProbe = 2 * time.Minute, 24 * time.Hour

// wall compares a request with the last probe of a wall, if that failed: each of them doubles the
// backoff. A killed process may not have committed its last probe, so it is judged within a
// process.
func (h *host) wall(q *requestlog.Request, f *Finding) {
	if h.probes == 0 || q.End.IsZero() || !q.Process.Began.Equal(h.prober) {
		return
	}
	wait := min(firstProbe<<min(h.probes-1, 16), lastProbe)
	if since, exact := q.StartedAt().Sub(h.probed); since >= 0 && since < wait {
		f.violated(BehindWall,
			fmt.Sprintf("%v after a probe of its wall that failed, number %d in a row; the backoff was "+
				"%v at least%s", since, h.probes, wait, byClock(exact)))
	}
}

// noteProbe takes note of a page. A request that waited for a wall is a probe, and a status that
// refuses is a failure.
func (h *host) noteProbe(q *requestlog.Request) {
	switch {
	case q.Kind != requestlog.Page || q.End.IsZero():
	case q.Reason == politeness.ReasonWall && wall.KindRefusal.Covers(q.Status):
		h.probes++
		h.probed, h.prober = q.EndedAt(), q.Process.Began
	case q.Status > 0:
		h.probes = 0
	}
}

// hours compares a request with the Visit-time of its robots.txt. If a host has several origins,
// their files may contradict each other: then it is not judged.
func (h *host) hours(q *requestlog.Request, f *Finding) {
	if h.origins || f.visits == nil || q.End.IsZero() {
		return
	}
	for _, v := range f.visits {
		if open(v.Window, q.Decided.UTC()) {
			return
		}
	}
	v := f.visits[0]
	f.violated(WrongHour, fmt.Sprintf("line %d of its robots.txt allows requests from %s to %s UTC only", v.Line,
		v.Window.From, v.Window.To))
}

// open reports whether a window is open at a time.
func open(w robots.Window, at time.Time) bool {
	from, to := w.Minutes()
	now := 60*at.Hour() + at.Minute()
	if from < to {
		return from <= now && now < to
	}
	return now >= from || now < to
}

// pass records a request, for comparison with the next one.
func (h *host) pass(q *requestlog.Request) {
	h.judge.Pass(timesOf(q))
	h.noteProbe(q)
	h.origins = h.origins || h.seen && h.origin != q.URL.Origin()
	h.origin, h.seen = q.URL.Origin(), true
}

// note records when the host was requested, and which robots.txt allowed it.
func (h *host) note(q *requestlog.Request, f *Finding) {
	if h.First.IsZero() {
		h.First = q.Start
	}
	h.Last = q.Start
	if q.Kind != requestlog.Page || q.Policy == nil {
		return
	}
	origin := q.URL.Origin()
	for i := range h.Versions {
		if v := &h.Versions[i]; v.version == q.Policy.Version && v.origin == origin {
			v.Last = q.Start
			v.Pages++
			return
		}
	}
	if len(h.Versions) == MaxVersions {
		h.Versions = append(h.Versions[:0], h.Versions[1:]...)
		h.Older++
	}
	v := Version{Class: f.class, Origin: origin.String(), First: q.Start, Last: q.Start, Pages: 1,
		version: q.Policy.Version, origin: origin}
	if !q.Policy.Version.IsZero() {
		v.Version = q.Policy.Version.String()
	}
	h.Versions = append(h.Versions, v)
}
