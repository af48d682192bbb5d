package robots

import (
	"bytes"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/httpfield"
)

// Header holds the response headers that matter, unchanged.
type Header struct {
	ContentType  string
	Location     string
	RetryAfter   string
	CacheControl string
	Expires      string
	Date         string
	Age          string
	ETag         string
	LastModified string
}

// Outcome is the result of one HTTP exchange for a robots.txt.
type Outcome struct {
	URL       string  // requested: the origin's /robots.txt, or the target of a redirect
	Redirects int     // followed before URL
	Failure   Failure // FailureNone: the response is complete, and the caller has no reason to distrust it
	Status    int     // of the response; 0: there was none
	Header    Header
	Body      []byte  // decoded; octets beyond MaxBody do not count
	Truncated bool    // the fetcher cut Body at its own limit; a broken transfer is FailureTransfer
	Jitter    float64 // random, 0 to 1, from the caller

	// HostAnswers says that the host has responded to other requests while its robots.txt was
	// unreachable. It matters only after Options.UndefinedAfter.
	HostAnswers bool
}

// ActionKind says what the caller does next.
type ActionKind uint8

const (
	ActionDone     ActionKind = iota // the record is complete: call Decide
	ActionRedirect                   // fetch Action.URL, with Action.Redirects, and call Next again
)

// Action is what the caller does next. A redirect may lead to another host: its request is subject
// to that host's politeness, while the rules found there count for the first origin (RFC 9309
// section 2.3.1.2).
type Action struct {
	Kind      ActionKind
	URL       string // absolute, http or https, without a fragment
	Redirects int    // for the next Outcome
}

// maxValidator is the length up to which validators and URLs are kept, in octets.
const maxValidator = 2048

// Next is the state machine of RFC 9309 section 2.3.1: it computes the next record from the last
// record and the outcome of a request. It is a pure function. While redirects are followed, the
// record does not change.
func (o Options) Next(prev Record, out Outcome, now time.Time) (Record, Action) {
	now = now.Round(0).UTC()
	switch {
	case out.Failure != FailureNone:
		return o.unreachable(prev, out, now), Action{}
	case httpfield.IsRedirect(out.Status):
		if target, ok := redirectTarget(out); ok && out.Redirects < o.MaxRedirects {
			return prev, Action{Kind: ActionRedirect, URL: target, Redirects: out.Redirects + 1}
		}
		return o.unavailable(prev, out, now), Action{}
	case out.Status == 304:
		return o.confirmed(prev, out, now), Action{}
	case out.Status == 206: // a part, which was not requested
		out.Failure = FailureTransfer
		return o.unreachable(prev, out, now), Action{}
	case out.Status >= 200 && out.Status < 300:
		return o.answered(prev, out, now), Action{}
	case out.Status == 429:
		return o.unreachable(prev, out, now), Action{}
	case out.Status >= 300 && out.Status < 500:
		return o.unavailable(prev, out, now), Action{}
	}
	if out.Status < 500 || out.Status > 599 {
		out.Failure = FailureProtocol
	}
	return o.unreachable(prev, out, now), Action{}
}

// redirectTarget returns the absolute URL that a redirect leads to. ok is false if it leads
// nowhere, to itself, or to a scheme other than http and https.
func redirectTarget(out Outcome) (target string, ok bool) {
	if out.Header.Location == "" || len(out.Header.Location) > maxValidator {
		return "", false
	}
	target, ok = resolve(out.URL, out.Header.Location)
	return target, ok && target != out.URL
}

// answered handles a 2xx: a robots.txt, an empty one, or other content under its name.
func (o Options) answered(prev Record, out Outcome, now time.Time) Record {
	switch content := ContentOf(out.Body); {
	case content != ContentFile && !agrees(prev, out, now):
		return o.unconfirmed(prev, out, now)
	case content == ContentOther:
		return known(ClassNotRobots, out).fresh(now, o.NotRobotsLifetime, out.Jitter)
	}
	r := known(ClassFound, out)
	text, _, cut := readableOf(out.Body, out.Truncated)
	// as plain text: in UTF-16 an octet that looks like a line end need not be one
	if r.Body, r.Cut = out.Body, cut; cut {
		r.Body = text
	}
	r.Body = bytes.Clone(r.Body[:min(len(r.Body), MaxBody)])
	r.ETag, r.LastModified = bounded(out.Header.ETag), bounded(out.Header.LastModified)
	d, _ := o.lifetime(out.Header, now)
	return r.fresh(now, d, out.Jitter)
}

// unavailable handles a 4xx, or too many redirects. That the file is gone counts at once; a refusal
// may be that of a firewall.
func (o Options) unavailable(prev Record, out Outcome, now time.Time) Record {
	class := ClassUnavailable
	if o.ForbiddenDenies && (out.Status == 401 || out.Status == 403) {
		class = ClassForbidden
	} else if out.Status != 404 && out.Status != 410 && !agrees(prev, out, now) {
		return o.unconfirmed(prev, out, now)
	}
	d, _ := o.lifetime(out.Header, now)
	return known(class, out).fresh(now, d, out.Jitter)
}

// agrees reports whether a response without a record of a robots.txt counts: there is no good file that
// it would replace, or the response before, for which Refresh has come since, was of its kind.
func agrees(prev Record, out Outcome, now time.Time) bool {
	return prev.Copy != ClassFound || ContentOf(prev.Body) != ContentFile ||
		prev.Class == ClassUnreachable && prev.Failure == FailureUnconfirmed &&
			prev.Status/100 == out.Status/100 && !now.Before(prev.Refresh)
}

// unconfirmed handles the first response in place of a good file that would end its rules.
func (o Options) unconfirmed(prev Record, out Outcome, now time.Time) Record {
	out.Failure = FailureUnconfirmed
	return o.unreachable(prev, out, now)
}

// confirmed handles a 304: the copy counts for another lifetime, by default as long as the one
// before.
func (o Options) confirmed(prev Record, out Outcome, now time.Time) Record {
	etag, lastModified := prev.Validators(out.URL)
	if etag == "" && lastModified == "" {
		out.Failure = FailureProtocol
		prev.ETag, prev.LastModified = "", ""
		return o.unreachable(prev, out, now)
	}
	d, ok := o.lifetime(out.Header, now)
	if before := prev.Expires.Sub(prev.Fetched); !ok && before > 0 {
		d = min(max(before, o.MinLifetime), o.MaxLifetime)
	}
	r := prev
	r.Class, r.Status, r.Failure = ClassFound, out.Status, FailureNone
	r.Redirects = out.Redirects
	r.FirstUnreachable, r.Failures = time.Time{}, 0
	if out.Header.ETag != "" {
		r.ETag = bounded(out.Header.ETag)
	}
	if out.Header.LastModified != "" {
		r.LastModified = bounded(out.Header.LastModified)
	}
	return r.fresh(now, d, out.Jitter)
}

// unreachable handles a failure: the copy stays, and the next attempt waits.
func (o Options) unreachable(prev Record, out Outcome, now time.Time) Record {
	r := prev
	r.Class, r.Status, r.Failure = ClassUnreachable, out.Status, out.Failure
	if r.FirstUnreachable.IsZero() || r.FirstUnreachable.After(now) {
		r.FirstUnreachable = storable(now)
	}
	r.Refresh = storableFrom(now.Add(o.retry(r.Failures, out, now)))
	r.Failures = min(r.Failures+1, 1<<20)
	if now.Sub(r.FirstUnreachable) >= o.UndefinedAfter {
		r = o.undefined(r, out, now)
	}
	return r
}

// undefined handles a file that is unreachable for longer than the 30 days of RFC 9309 section
// 2.3.1.4. A copy still counts. Without a copy the file is unavailable if the host responds at all,
// and failures are still counted.
func (o Options) undefined(r Record, out Outcome, now time.Time) Record {
	switch r.Copy {
	case ClassFound:
		if !o.ForgetCopy {
			return r
		}
	case ClassForbidden:
		return r
	default:
		if !out.HostAnswers {
			return r
		}
	}
	refresh, first, failures := r.Refresh, r.FirstUnreachable, r.Failures
	r = known(ClassUnavailable, out).fresh(now, o.MaxLifetime, 0)
	r.Failure, r.Refresh, r.FirstUnreachable, r.Failures = out.Failure, refresh, first, failures
	return r
}

// retry returns the wait after one more failure: Retry-After, else a time that doubles with
// failures. What is not confirmed is fetched again after the lifetime that it would have.
func (o Options) retry(failures int, out Outcome, now time.Time) time.Duration {
	whole := out.Failure == FailureNone || out.Failure == FailureWall
	if d, ok := httpfield.RetryAfter(out.Header.RetryAfter, now); ok && whole {
		return min(max(d, o.MinRetry), o.MaxRetryAfter)
	}
	d := o.MinRetry
	for ; failures > 0 && d < o.MaxRetry; failures-- {
		d *= 2
	}
	if d = min(d, o.MaxRetry); out.Failure == FailureUnconfirmed {
		d = o.NotRobotsLifetime
	}
	return d + time.Duration(unitInterval(out.Jitter)*float64(d)/4)
}

// known starts the record of a response.
func known(class Class, out Outcome) Record {
	return Record{Class: class, Copy: class, Status: out.Status, FinalURL: bounded(out.URL), Redirects: out.Redirects}
}

// fresh starts a lifetime at now. The refresh is due when 80 to 95 % of it have passed.
func (r Record) fresh(now time.Time, d time.Duration, jitter float64) Record {
	r.Fetched = storable(now)
	r.Expires = r.Fetched.Add(d)
	r.Refresh = storableFrom(now.Add(time.Duration(float64(d) * (0.8 + 0.15*unitInterval(jitter)))))
	return r
}

// unitInterval bounds a jitter.
func unitInterval(f float64) float64 {
	if f >= 0 && f <= 1 {
		return f
	}
	return 0
}

// bounded drops a header value that is too long to be kept.
func bounded(s string) string {
	if len(s) > maxValidator {
		return ""
	}
	return strings.Clone(s)
}

// storable returns t as it is read back from the disk: without monotonic clock and in milliseconds.
func storable(t time.Time) time.Time {
	return t.Round(0).UTC().Truncate(time.Millisecond)
}

// storableFrom returns the first storable instant from t on, so that nothing due at t is early.
func storableFrom(t time.Time) time.Time { return storable(t.Add(time.Millisecond - 1)) }
