package lookup

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// view is what the page shows.
type view struct {
	Product, Path string
	Days          int
	Problem       string // why there is nothing else
	Done          string // what was done, or is under way
	Host          string
	Known         bool
	Requests      uint32 // of all time
	Bytes         uint64

	Key, Token     string // Key is empty as long as nothing is to be proven
	Record         string // name of the TXT record
	File           string // URL of the file; empty: no origin of the host is known
	FileState      string // what became of its request
	Proof          string // empty: not proven
	Pace           string
	Next, Recrawl  time.Time
	NextURLs       []string
	Robots         []string // of each origin
	Preferences    []string
	Stopped, Wall  string
	Slowed, Closed *Asked
	Log            *Report
	Gap            string
	Find           string // in the URLs of Rows; empty: all
	Rows           []row
}

// row is one request, for people.
type row struct {
	At            time.Time
	What, Outcome string
	Waited, Delay string
	Robots, Cause string
}

// since is the instant from which on requests are shown.
func (l *Lookup) since() time.Time { return l.o.Now().AddDate(0, 0, -l.o.Days) }

// describe returns the view of a host. done says what was done before.
func (l *Lookup) describe(ctx context.Context, v *visitor, done string) (*view, error) {
	s := &v.story
	out := &view{Host: v.host, Known: v.known, Requests: s.Requests, Bytes: s.Bytes, Done: done}
	if !v.known {
		return out, nil
	}
	if out.Key = v.key; v.key == "" {
		out.Key = newKey()
		return out, nil
	}
	out.Token, out.Proof = v.token, v.proof
	if isName(v.host) {
		out.Record = recordName + v.host
	}
	if v.proof == "" {
		return out, l.describeFile(ctx, v, out)
	}
	out.Pace, out.Next = s.Politeness.Text, s.Next
	for _, o := range s.Origins {
		if out.Recrawl.IsZero() || !o.NextRecrawl.IsZero() && o.NextRecrawl.Before(out.Recrawl) {
			out.Recrawl = o.NextRecrawl
		}
		out.NextURLs = append(out.NextURLs, o.Next...)
		out.Robots = append(out.Robots, fmt.Sprintf("%s/robots.txt: %s", o.Origin, robotsText(&o.Robots)))
	}
	out.Stopped = s.OptOut
	if s.Wall != nil {
		out.Wall = s.State
	}
	w := l.wishes.of(v.host)
	out.Slowed, out.Closed = w.slow, w.stop
	out.Find = v.find
	log, err := l.visits.of(ctx, v.crawl, v.host, v.find, l.since())
	if err != nil {
		return nil, err
	}
	out.Log = log
	if !math.IsInf(log.Smallest, 1) {
		out.Gap = fmt.Sprintf("%.3f s, when the delay in force was %s", log.Smallest, seconds(log.Delay))
	}
	return out, l.rows(ctx, v, out)
}

// describeFile says what became of the request for the file of a proof.
func (l *Lookup) describeFile(ctx context.Context, v *visitor, out *view) error {
	origins := v.origins()
	if len(origins) == 0 {
		return nil
	}
	u, err := fileOf(origins[0], v.token)
	if err != nil {
		return nil
	}
	out.File = u.String()
	story, err := v.crawl.URL(ctx, u)
	switch {
	case err != nil:
		return err
	case !story.Robots.Allowed && story.Robots.Rule != "":
		out.FileState = "Your robots.txt disallows this file: " + story.Robots.Rule
	case story.Known && story.State == "queued":
		out.FileState = "It waits to be fetched."
	case story.Known && !story.LastFetched.IsZero():
		out.FileState = fmt.Sprintf("It was fetched at %s, with status %d: the token was not found in it.",
			clock(story.LastFetched), story.Status)
	case story.Known:
		out.FileState = strings.TrimSpace("It cannot be fetched: " + story.State + " " + story.Reason)
	}
	return nil
}

func robotsText(r *inspect.Robots) string {
	if r.Fetched.IsZero() {
		return r.Class
	}
	text := fmt.Sprintf("%s, fetched %s UTC", r.Class, clock(r.Fetched))
	if r.Group != "" {
		text += ", group " + r.Group
	}
	if !r.Refresh.IsZero() {
		text += ", to be fetched again " + clock(r.Refresh) + " UTC"
	}
	return text
}

// rows describes the newest requests, and what preferences their pages have.
func (l *Lookup) rows(ctx context.Context, v *visitor, out *view) error {
	causes, preferences := make(map[string]string), make(map[string]bool)
	for i := range out.Log.Visits {
		q := &out.Log.Visits[i]
		cause, known := causes[q.URL]
		if !known && q.Kind == "page" {
			u, err := weburl.Parse(q.URL)
			if err != nil {
				return err
			}
			story, err := v.crawl.URL(ctx, u)
			if err != nil {
				return err
			}
			cause = causeOf(&story)
			for category, use := range story.Usage {
				preferences[fmt.Sprintf("%s: %s", category, use)] = true
			}
		}
		causes[q.URL] = cause
		out.Rows = append(out.Rows, rowOf(q, cause, out.Log.again[i]))
	}
	out.Preferences = slices.Sorted(maps.Keys(preferences))
	return nil
}

// causeOf says why a URL is fetched at all.
func causeOf(s *inspect.URLStory) string {
	switch {
	case s.Seed:
		return "named by the operator of the crawler"
	case s.Sitemap:
		return "named as a sitemap"
	case s.Via != "":
		return "found on " + s.Via
	case strings.Contains(s.URL.URL, filePath):
		return "somebody wanted to prove here that the host is theirs"
	}
	return "added by the operator of the crawler"
}

func rowOf(q *Visit, cause string, again bool) row {
	r := row{At: q.At, What: q.Method + " " + q.URL, Delay: seconds(q.Delay) + ", " + q.Reason, Cause: cause}
	if q.Kind == "robots" {
		r.Cause = "before pages are requested, and to know when it changes"
	} else if again {
		r.Cause = strings.TrimPrefix(cause+"; requested again", "; ")
	}
	switch {
	case q.NoEnd:
		r.Outcome = "end unknown"
	case q.Status == 0:
		r.Outcome = q.Failure
	default:
		r.Outcome = fmt.Sprintf("%d, %d bytes", q.Status, q.Bytes)
	}
	if q.Gap != nil {
		r.Waited = fmt.Sprintf("%.3f s", *q.Gap)
	}
	if q.DelayText != "" {
		r.Delay += ": " + q.DelayText
	}
	switch {
	case q.Rule != "":
		r.Robots = fmt.Sprintf("line %d: %s", q.RuleLine, q.Rule)
	case q.Verdict != "":
		r.Robots = q.Verdict
	}
	if q.Version != "" {
		r.Robots = strings.TrimSpace(r.Robots + " (version " + q.Version + ")")
	}
	return r
}
