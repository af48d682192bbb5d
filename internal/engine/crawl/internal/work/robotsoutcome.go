package work

import (
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// robotsOutcome returns what the request of a robots lease has brought, for the state machine, and
// notes what it says about a wall of the host that served it.
func (j *judging) robotsOutcome(res *Result, resp *fetch.Response, failure *fetch.Error) robots.Outcome {
	l := &res.Lease
	if failure != nil {
		return robots.Outcome{URL: l.URL.String(), Failure: robotsFailure(failure.Kind)}
	}
	out, a, err := RobotsOutcome(l.URL, resp, j.marks)
	switch {
	case err != nil:
		out.Failure = robots.FailureConnect
		j.log.Error("cannot read back a robots.txt", "url", out.URL, "error", err)
	case out.Failure == robots.FailureWall:
		a.Took, a.RetryAfter, a.URL = resp.End.Sub(resp.Start), res.Request.RetryAfter, j.store.Fingerprint(l.URL)
		a.Section, a.Top = wall.Sections(l.URL.RequestURI())
		res.Robots.Wall = a
	case l.Wall != nil && l.Robots.Previous.Copy == robots.ClassFound && isRefused(l.Wall, &out):
		out.Failure = robots.FailureWall
	}
	return out
}

// isRefused reports whether a wall that the host is behind may have sent a response in place of a
// robots.txt.
func isRefused(known *wall.State, out *robots.Outcome) bool {
	v := known.Verdict()
	return v.Kind.Covers(out.Status) && (out.Status/100 != 2 || robots.ContentOf(out.Body) != robots.ContentFile)
}

// RobotsOutcome returns what a response to a request for a robots.txt is, for [robots.Options.Next]. The
// challenge of a wall has robots.FailureWall, and a says what it says about the wall; else a is zero.
func RobotsOutcome(u weburl.URL, resp *fetch.Response, marks *wall.Marks) (out robots.Outcome, a wall.Answer,
	err error) {
	out.URL = u.String()
	body, err := resp.Body.Load(nil, robots.MaxBody+1)
	if err != nil {
		return out, a, err
	}
	out.Status, out.Body, out.Truncated = resp.Status, body, resp.Truncated
	h := resp.Header
	out.Header = robots.Header{
		ContentType: h.Get("Content-Type"), Location: h.Get("Location"), RetryAfter: h.Get("Retry-After"),
		CacheControl: h.Get("Cache-Control"), Expires: h.Get("Expires"), Date: h.Get("Date"), Age: h.Get("Age"),
		ETag: h.Get("ETag"), LastModified: h.Get("Last-Modified"),
	}
	if challenge, found := robotsChallenge(u, resp, body, marks); found {
		out.Failure, a = robots.FailureWall, challenge
	}
	return out, a, nil
}

// robotsChallenge reports whether a response in place of a robots.txt is a challenge. A file with
// records never is one, and what stands in the comments of a file is no mark. Anything else is a
// document, whatever its type: a wall keeps the type that the path has.
func robotsChallenge(u weburl.URL, resp *fetch.Response, body []byte, marks *wall.Marks) (a wall.Answer, found bool) {
	content := robots.ContentOf(body)
	if resp.Status == 304 || content == robots.ContentFile && resp.Status/100 == 2 {
		return a, false
	}
	a = wall.Answer{Status: resp.Status, HTML: true, Length: int64(len(body))}
	if content != robots.ContentOther {
		body = nil
	}
	a.Mark, a.Shape = marks.Find(resp.Header, body), wall.Shape(body, u.Host()+u.RequestURI())
	sign := a.Sign()
	return a, sign == wall.SignChallenge || sign == wall.SignMarked
}
