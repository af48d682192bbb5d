package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// URLStory is all that is known of a URL, and what would become of it now.
type URLStory struct {
	URL
	Robots Verdict `json:"robots"`
	Host   Host    `json:"host"`
}

// Verdict is what the stored robots.txt of an origin says about one URL now.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	Line    int    `json:"line,omitempty"`
	Rule    string `json:"rule,omitempty"` // the deciding line
	Record  Robots `json:"record"`
}

// URL tells one URL's story; ErrUnknown if it is not in the store.
func (v *View) URL(ctx context.Context, u weburl.URL) (URLStory, error) {
	head, host, err := v.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return URLStory{}, fmt.Errorf("%s: %w", u, ErrUnknown)
	}
	if err != nil {
		return URLStory{}, err
	}
	s := URLStory{URL: newURL(u.String(), &head)}
	w := walk{view: v, via: make(map[source]string)}
	if s.Via, err = w.viaOf(&head.Entry); err != nil {
		return s, err
	}
	if s.Robots, err = v.verdict(u); err != nil {
		return s, err
	}
	s.Host, err = v.oneHost(ctx, &host)
	return s, err
}

func (v *View) verdict(u weburl.URL) (Verdict, error) {
	p, err := v.policy(u.Origin())
	if err != nil {
		return Verdict{}, err
	}
	verdict := Verdict{Record: p.describe()}
	if !p.known {
		verdict.Reason = "robots.txt was not asked for yet"
		return verdict, nil
	}
	m := p.rules.Match(u.RequestURI())
	verdict.Allowed, verdict.Reason, verdict.Line, verdict.Rule = m.Allowed, m.Reason.String(), m.Line, p.rules.RuleText(m)
	return verdict, nil
}
