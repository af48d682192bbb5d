package inspect

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// URL is all that is known of a URL. Times are of whole seconds, in UTC.
type URL struct {
	URL          string    `json:"url"`
	State        string    `json:"state"`
	Reason       string    `json:"reason,omitempty"` // why it is in this state, see ReasonName
	Status       int       `json:"status,omitempty"` // of the last answer
	Depth        int       `json:"depth"`
	Priority     int       `json:"priority,omitempty"`
	Seed         bool      `json:"seed,omitempty"`
	Sitemap      bool      `json:"sitemap,omitempty"`    // somebody called it a sitemap
	ChangeFreq   string    `json:"changefreq,omitempty"` // how often it changes, as a sitemap says
	Redirects    int       `json:"redirects,omitempty"`  // in a row that led here
	Via          string    `json:"via,omitempty"`        // the page it was found on
	FirstSeen    time.Time `json:"first_seen"`
	LastFetched  time.Time `json:"last_fetched,omitzero"` // end of the last request
	Judged       time.Time `json:"judged,omitzero"`       // when it was settled without a request
	Attempts     int       `json:"attempts,omitempty"`    // failed ones in a row
	Due          time.Time `json:"due,omitzero"`          // when it may be asked next
	Bytes        uint64    `json:"bytes,omitempty"`
	Digest       string    `json:"digest,omitempty"` // the beginning of that in the output
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	RobotsLine   int       `json:"robots_line,omitempty"`
	Position     string    `json:"position,omitempty"` // in the walk over all URLs
}

// newURL makes a URL of what the store holds. via is filled in by the caller.
func newURL(text string, h *storage.Head) URL {
	o := &h.Last
	u := URL{
		URL: text, State: o.State.String(), Reason: ReasonName(o.Reason), Status: int(o.Status),
		Depth: int(h.Depth), Priority: int(h.Priority), Seed: h.Seed, Sitemap: h.Sitemap, ChangeFreq: h.Frequency.String(), Redirects: int(h.Redirects),
		FirstSeen: h.FirstSeen.UTC(), Attempts: int(o.Attempts), Bytes: o.Bytes, ETag: o.ETag, LastModified: o.Modified,
		RobotsLine: int(o.Line),
	}
	if !o.Due.IsZero() {
		u.Due = o.Due.UTC()
	}
	if o.Digest != 0 {
		u.Digest = fmt.Sprintf("sha256:%016x", o.Digest)
	}
	switch {
	case o.At.IsZero():
	case o.Status != 0 || o.Reason >= storage.ReasonFetch:
		u.LastFetched = o.At.UTC()
	default:
		u.Judged = o.At.UTC()
	}
	return u
}
