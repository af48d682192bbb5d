package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// URL is everything known of a URL. Times are in whole seconds, in UTC.
type URL struct {
	URL          string    `json:"url"`
	State        string    `json:"state"`
	Reason       string    `json:"reason,omitempty"` // why it is in this state, see ReasonName
	Status       int       `json:"status,omitempty"` // of the last response
	Depth        int       `json:"depth"`
	Priority     int       `json:"priority,omitempty"`
	Seed         bool      `json:"seed,omitempty"`
	Sitemap      bool      `json:"sitemap,omitempty"`    // it was announced as a sitemap
	Requisite    bool      `json:"requisite,omitempty"`  // no page, but what the page that it was found on is made of
	ChangeFreq   string    `json:"changefreq,omitempty"` // how often it changes, according to a sitemap
	Redirects    int       `json:"redirects,omitempty"`  // redirects and refreshes in a row that led here
	Via          string    `json:"via,omitempty"`        // the page it was found on
	FirstSeen    time.Time `json:"first_seen,omitzero"`
	LastFetched  time.Time `json:"last_fetched,omitzero"` // end of the last request
	Judged       time.Time `json:"judged,omitzero"`       // when its state was decided without a request
	Attempts     int       `json:"attempts,omitempty"`    // failed requests in a row
	Due          time.Time `json:"due,omitzero"`          // when it may be fetched next
	Bytes        uint64    `json:"bytes,omitempty"`
	Digest       string    `json:"digest,omitempty"` // beginning of the digest in the output
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	RobotsLine   int       `json:"robots_line,omitempty"`
	// which fault it was, where its reason covers several; what a 402 or a 451 said
	Note string `json:"note,omitempty"`
	// Usage is what all sources say about each category of use that one of them mentions, as of
	// LastFetched.
	Usage    map[string]Usage `json:"usage,omitempty"`
	Position string           `json:"position,omitempty"` // position in the walk over all URLs

	Metadata map[string][]string `json:"metadata,omitempty"` // of lists of URLs: what clients attached to it
}

// Usage is whether a use of a page is preferred, and by which statement.
type Usage struct {
	Preference string `json:"preference"` // y or n
	From       string `json:"from"`       // where the statement stands that decides, such as "robots.txt line 3"
}

// String is one for people.
func (u Usage) String() string { return u.Preference + ", by " + u.From }

// usageOf returns the kept preferences of a page; nil: there are none.
func usageOf(kept string) map[string]Usage {
	list, err := consent.Kept(kept)
	if err != nil || len(list) == 0 { // a later version of amble may have kept them
		return nil
	}
	usage := make(map[string]Usage, len(list))
	for _, s := range list {
		c, p := s.Category()
		usage[c.String()] = Usage{Preference: p.String(), From: s.From()}
	}
	return usage
}

// newURL makes a URL from the store's data. The caller sets Via.
func newURL(text string, h *storage.Head) URL {
	o := &h.Last
	u := URL{
		URL: text, State: o.State.String(), Reason: ReasonName(o.Reason), Status: int(o.Status),
		Depth: int(h.Depth), Priority: int(h.Priority), Seed: h.Seed, Sitemap: h.Sitemap, Requisite: h.IsRequisite(),
		ChangeFreq: h.Frequency.String(), Redirects: int(h.Redirects),
		Attempts: int(o.Attempts), Bytes: o.Bytes, ETag: o.ETag, LastModified: o.Modified,
		RobotsLine: int(o.Line), Note: o.Note, Usage: usageOf(o.Usage),
	}
	if !h.FirstSeen.IsZero() {
		u.FirstSeen = h.FirstSeen.UTC()
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

// URLStory is everything known of a URL, and what would become of it now. For a URL that is not in
// the store it has only the latter.
type URLStory struct {
	URL
	Known bool `json:"known"` // it is in the store
	// how it was found: the page it was found on, the page that one was found on, and so on to a
	// seed
	Chain []Step `json:"chain,omitempty"`
	Scope *Scope `json:"scope,omitempty"` // what the scope says about it now
	// by which line of the list it is an expensive endpoint, which traps.expensive is about
	Expensive *Expensive `json:"expensive,omitempty"`
	Earliest  time.Time  `json:"earliest,omitzero"` // when it may be fetched at the earliest; absent: now, or never
	Robots    Verdict    `json:"robots"`
	Host      Host       `json:"host"`
	// Requisites is how much of what the page is made of is stored, where a module knows that.
	Requisites any `json:"requisites,omitempty"`
}

// StateUnknown is the state of a URL, and of a host, that is not in the store.
const StateUnknown = "unknown"

// Step is one URL on the way to another.
type Step struct {
	URL   string `json:"url"`
	State string `json:"state"`
	Depth int    `json:"depth"`
	Seed  bool   `json:"seed,omitempty"`
}

// maxSteps bounds a chain.
const maxSteps = 50

// Scope is whether the scope allows a URL.
type Scope struct {
	In     bool   `json:"in"`
	Reason string `json:"reason"`
}

// Verdict is what the stored robots.txt of an origin says about one URL now.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	Line    int    `json:"line,omitempty"`
	Rule    string `json:"rule,omitempty"` // the deciding line
	Record  Robots `json:"record"`
}

// URL returns everything known of a URL, which may be missing in the store.
func (v *View) URL(ctx context.Context, u weburl.URL) (s URLStory, err error) {
	head, host, err := v.store.Lookup(u)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		s.URL = URL{URL: u.String(), State: StateUnknown}
		err = v.strangersHost(ctx, u.Host(), &s)
	case err == nil:
		s.Known, s.URL = true, newURL(u.String(), &head)
		err = v.known(ctx, &head, &host, &s)
	}
	if err != nil {
		return s, err
	}
	if v.o.Scope != nil {
		in, why := v.o.Scope(u, &head.Entry)
		s.Scope = &Scope{In: in, Reason: why}
	}
	s.Expensive = expensiveBy(u)
	s.Robots, err = v.verdict(u)
	return s, err
}

// known adds the data of the store.
func (v *View) known(ctx context.Context, head *storage.Head, host *storage.Host, s *URLStory) (err error) {
	if s.Chain, err = v.chain(&head.Entry); err != nil {
		return err
	}
	if len(s.Chain) > 0 {
		s.Via = s.Chain[0].URL
	}
	if s.Host, err = v.oneHost(ctx, host); err != nil {
		return err
	}
	if state := head.Last.State; state == storage.Queued || state == storage.Retrying || !s.Due.IsZero() {
		s.Earliest = s.Host.Next
		if s.Due.After(s.Earliest) {
			s.Earliest = s.Due
		}
	}
	return nil
}

// strangersHost returns the host of an unknown URL. The host itself may be known.
func (v *View) strangersHost(ctx context.Context, name string, s *URLStory) error {
	host, err := v.store.HostByName(name)
	if errors.Is(err, storage.ErrNotFound) {
		s.Host = Host{Host: name, State: StateUnknown}
		return nil
	}
	if err == nil {
		s.Host, err = v.oneHost(ctx, &host)
	}
	return err
}

// chain follows the pages on which a URL was found.
func (v *records) chain(from *storage.Entry) (steps []Step, err error) {
	host, ordinal := from.ViaHost, from.ViaOrdinal
	for len(steps) < maxSteps && host != storage.NoHost {
		u, err := v.store.URL(host, ordinal)
		if errors.Is(err, storage.ErrNotFound) {
			return steps, nil // the page was deleted
		}
		if err != nil {
			return steps, fmt.Errorf("how it was found: %w", err)
		}
		step := Step{URL: u.String()}
		_, err = v.store.URLs(host, ordinal, 1, func(h storage.Head) {
			step.State, step.Depth, step.Seed = h.Last.State.String(), int(h.Depth), h.Seed
			host, ordinal = h.ViaHost, h.ViaOrdinal
		})
		if err != nil {
			return steps, fmt.Errorf("how it was found: %w", err)
		}
		steps = append(steps, step)
		if step.Seed {
			break
		}
	}
	return steps, nil
}

func (v *View) verdict(u weburl.URL) (Verdict, error) {
	p, err := v.policy(u.Origin())
	if err != nil {
		return Verdict{}, err
	}
	return p.verdict(u), nil
}

// verdict returns what a policy says about one URL of its origin.
func (p *policy) verdict(u weburl.URL) Verdict {
	verdict := Verdict{Record: p.describe()}
	if !p.known {
		verdict.Reason = "robots.txt was not fetched yet"
		return verdict
	}
	m := p.rules.Match(u.RequestURI())
	verdict.Allowed, verdict.Reason, verdict.Line, verdict.Rule = m.Allowed, m.Reason.String(), m.Line,
		p.rules.RuleText(m)
	return verdict
}
