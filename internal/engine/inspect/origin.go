package inspect

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Politeness says why a host may not be fetched from before an instant, and how fast it may be.
type Politeness struct {
	Text        string    `json:"text"`   // all of it in one line
	Reason      string    `json:"reason"` // of the limit that decides
	Since       time.Time `json:"since,omitzero"`
	Until       time.Time `json:"until,omitzero"`
	Delay       float64   `json:"delay_seconds"` // in force between requests
	DelayReason string    `json:"delay_reason"`  // of the limit that sets the delay
	// of Reason: a line of robots.txt, a header, a setting, a shared limit
	Source       string    `json:"source,omitempty"`
	DelaySource  string    `json:"delay_source,omitempty"` // of DelayReason
	Paused       bool      `json:"paused,omitempty"`       // until it is resumed
	Backoff      int       `json:"backoff"`                // level; 0: none
	FailingSince time.Time `json:"trouble_since,omitzero"`
	Parked       bool      `json:"parked"`
}

// Origin is one queue of a host: robots.txt belongs to a scheme, host and port.
type Origin struct {
	Origin  string    `json:"origin"`
	Cursor  uint32    `json:"cursor"` // the ordinal before which no URL is queued
	Queued  uint32    `json:"queued"`
	Due     uint32    `json:"due"` // URLs that wait for another attempt
	NextDue time.Time `json:"next_due,omitzero"`
	// when the first of its pages is to be fetched again; absent: none is planned
	NextRecrawl time.Time `json:"next_recrawl,omitzero"`
	Robots      Robots    `json:"robots"`
	Next        []string  `json:"next"` // the next URLs, a few of them
}

func (v *View) origin(host storage.HostID, index uint8, q *storage.Queue) (Origin, error) {
	p, err := v.policy(q.Origin)
	o := Origin{Origin: q.Origin.String(), Cursor: q.Cursor, Queued: q.Queued, Due: q.Due, Robots: p.describe(),
		Next: []string{}}
	if q.NextDue > 0 {
		o.NextDue = time.Unix(int64(q.NextDue), 0).UTC()
	}
	if q.NextRecrawl > 0 {
		o.NextRecrawl = time.Unix(int64(q.NextRecrawl), 0).UTC()
	}
	if err != nil || q.Queued+q.Due == 0 {
		return o, err
	}
	heads, err := v.store.Heads(storage.HeadsRequest{Host: host, Origin: index, From: q.Cursor, Queued: nextURLs,
		Due: nextURLs, Now: v.o.Now()})
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
		DelayReason: e.DelayReason.String(), Backoff: e.Backoff, FailingSince: e.FailingSince.UTC(), Parked: e.Parked,
		Paused: e.Forever,
	}
}
