package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// HostStory is all that is known of a host.
type HostStory struct {
	Host
	Politeness Politeness `json:"politeness"`
	InFlight   int        `json:"in_flight"`         // requests; only a running crawl has some
	Address    string     `json:"address,omitempty"` // that the running crawl asks it at
	Origins    []Origin   `json:"origins"`
	Traps      []Trap     `json:"traps,omitempty"`

	Errors map[string]uint32 `json:"errors,omitempty"` // requests that went wrong, over all runs, by the names of docs/ERRORS.md
}

// Trap is one kind of trap of a host: URLs that were refused because they lead into it.
type Trap struct {
	Reason  string   `json:"reason"`
	Refused uint64   `json:"refused"`
	Samples []string `json:"samples"` // a few of them
}

// Politeness says why a host may not be asked before an instant, and how fast it may be.
type Politeness struct {
	Text         string    `json:"text"`   // all of it in one line
	Reason       string    `json:"reason"` // the sign that decides
	Since        time.Time `json:"since,omitzero"`
	Until        time.Time `json:"until,omitzero"`
	Delay        float64   `json:"delay_seconds"`          // in force between requests
	DelayReason  string    `json:"delay_reason"`           // the sign that asks for it
	Source       string    `json:"source,omitempty"`       // of Reason: a line of robots.txt, a header, a setting, a shared limit
	DelaySource  string    `json:"delay_source,omitempty"` // of DelayReason
	Paused       bool      `json:"paused,omitempty"`       // until further notice
	Backoff      int       `json:"backoff"`                // level; 0: none
	TroubleSince time.Time `json:"trouble_since,omitzero"`
	Parked       bool      `json:"parked"`
}

// Origin is one queue of a host: robots.txt belongs to a scheme, host and port.
type Origin struct {
	Origin  string    `json:"origin"`
	Cursor  uint32    `json:"cursor"` // every queued URL before it was touched
	Queued  uint32    `json:"queued"`
	Due     uint32    `json:"due"` // have a time at which they may be asked again
	NextDue time.Time `json:"next_due,omitzero"`
	Robots  Robots    `json:"robots"`
	Next    []string  `json:"next"` // the URLs that come next, a few of them
}

// nextURLs is how many of the URLs that come next are told.
const nextURLs = 10

// Host tells a host's story; ErrUnknown if it is not in the store.
func (v *View) Host(ctx context.Context, name string) (HostStory, error) {
	h, err := v.host(name)
	if err != nil {
		return HostStory{}, err
	}
	s, err := v.standing(ctx, &h)
	if err != nil {
		return HostStory{}, err
	}
	story := HostStory{Host: s.Host, Politeness: explained(&s.polite), Origins: []Origin{}, Errors: errorCounts(&h)}
	if s.live != nil {
		story.InFlight = s.live.InFlight
		if s.live.Address.IsValid() {
			story.Address = s.live.Address.String()
		}
	}
	for i, q := range h.Queues {
		o, err := v.origin(h.ID, uint8(i), &q)
		if err != nil {
			return story, err
		}
		story.Origins = append(story.Origins, o)
	}
	if story.Politeness.Source, err = v.source(s.polite.Source, &h); err != nil {
		return story, err
	}
	if story.Politeness.DelaySource, err = v.source(s.polite.DelaySource, &h); err != nil {
		return story, err
	}
	story.Traps, err = v.traps(h.ID)
	return story, err
}

func errorCounts(h *storage.Host) map[string]uint32 {
	if len(h.Errors) == 0 {
		return nil
	}
	m := make(map[string]uint32, len(h.Errors))
	for _, e := range h.Errors {
		m[ReasonName(e.Reason)] = e.Count
	}
	return m
}

func (v *View) traps(id storage.HostID) ([]Trap, error) {
	counts, err := v.store.Traps(id)
	if err != nil {
		return nil, err
	}
	var traps []Trap
	for _, c := range counts {
		traps = append(traps, Trap{Reason: c.Reason.String(), Refused: c.Count, Samples: c.Samples})
	}
	return traps, nil
}

func (v *View) origin(host storage.HostID, index uint8, q *storage.Queue) (Origin, error) {
	p, err := v.policy(q.Origin)
	o := Origin{Origin: q.Origin.String(), Cursor: q.Cursor, Queued: q.Queued, Due: q.Due, Robots: p.describe(), Next: []string{}}
	if q.NextDue > 0 {
		o.NextDue = time.Unix(int64(q.NextDue), 0).UTC()
	}
	if err != nil || q.Queued+q.Due == 0 {
		return o, err
	}
	heads, err := v.store.Heads(storage.HeadsRequest{Host: host, Origin: index, From: q.Cursor, Queued: nextURLs, Due: nextURLs, Now: v.o.Now()})
	for _, list := range [][]storage.Head{heads.Due, heads.Queued} {
		for i := range list[:min(len(list), nextURLs-len(o.Next))] {
			o.Next = append(o.Next, q.Origin.URL(list[i].RequestURI).String())
		}
	}
	return o, err
}

func explained(e *politeness.Explanation) Politeness {
	until := e.Until.UTC()
	if e.Forever {
		until = time.Time{}
	}
	return Politeness{
		Text: e.String(), Reason: e.Reason.String(), Since: e.Since.UTC(), Until: until, Delay: e.Delay.Seconds(),
		DelayReason: e.DelayReason.String(), Backoff: e.Backoff, TroubleSince: e.TroubleSince.UTC(), Parked: e.Parked,
		Paused: e.Forever,
	}
}

// source is where a sign comes from, for people: the line of robots.txt is spelt out.
func (v *View) source(s politeness.Source, h *storage.Host) (string, error) {
	switch {
	case s.Header != "":
		return "Retry-After: " + s.Header, nil
	case s.Line.Number == 0 || int(s.Line.Origin) >= len(h.Queues):
		return s.String(), nil
	}
	origin := h.Queues[s.Line.Origin].Origin
	p, err := v.policy(origin)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/robots.txt line %d: %s", origin, s.Line.Number, robots.LineText(p.record.Body, int(s.Line.Number))), nil
}
