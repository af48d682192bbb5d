package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// markRecheck begins the names of the marks that say how far the denied URLs
// of an origin have been put to its new rules. A restart goes on from there.
const markRecheck = "recheck/"

// recheckPage is how many URLs of a host are looked at in one read.
const recheckPage = 1000

// recheck is the walk over one origin's denied URLs.
type recheck struct {
	frontier.Recheck
	from uint32
}

func (c *recheck) mark() string { return fmt.Sprintf("%s%d/%d", markRecheck, c.Host, c.Origin) }

// rechecked is what one page of such a walk found.
type rechecked struct {
	mark string
	done []storage.Done // URLs that are allowed now, due at once
	next []byte         // the mark's value; nil: the walk is over
	err  error
}

// openRechecks finds the walks that an earlier process did not finish.
func (r *run) openRechecks() error {
	marks, err := r.store.Marks(markRecheck)
	if err != nil {
		return err
	}
	for name, value := range marks {
		c := &recheck{}
		if _, err := fmt.Sscanf(strings.TrimPrefix(name, markRecheck), "%d/%d", &c.Host, &c.Origin); err != nil || len(value) != 4 {
			return fmt.Errorf("mark %s: %w", name, storage.ErrCorrupt)
		}
		c.from = binary.BigEndian.Uint32(value)
		r.rechecks = append(r.rechecks, c)
	}
	return nil
}

// addRechecks begins walks, on disk too.
func (r *run) addRechecks(asked []frontier.Recheck) {
	for _, a := range asked {
		c := &recheck{Recheck: a}
		r.rechecks = append(r.rechecks, c)
		r.pending.setMark(c.mark(), make([]byte, 4))
	}
}

// nextRecheck is the channel and the walk to offer to the rechecker.
func (r *run) nextRecheck() (chan<- *recheck, *recheck) {
	if len(r.rechecks) == 0 {
		return nil, nil
	}
	return r.toRecheck, r.rechecks[0]
}

// takeRechecked takes in a page of a walk.
func (r *run) takeRechecked(p *rechecked) {
	if p.err != nil {
		r.fail(fmt.Errorf("ask again about denied URLs: %w", p.err))
		return
	}
	r.pending.batch.Done = append(r.pending.batch.Done, p.done...)
	r.pending.size += len(p.done)
	r.pending.setMark(p.mark, r.recheckMark(p))
	if p.next == nil {
		r.rechecking--
	}
}

// recheckMark is where a restart would have to go on: from the begin, where the
// rules changed once more and another walk over the same origin waits.
func (r *run) recheckMark(p *rechecked) []byte {
	if slices.ContainsFunc(r.rechecks, func(c *recheck) bool { return c.mark() == p.mark }) {
		return make([]byte, 4)
	}
	return p.next
}

// recheckAll is the rechecker: it walks one origin after the other.
func (r *run) recheckAll(ctx context.Context) {
	for c := range r.toRecheck {
		for more := true; more; {
			page := r.recheckPage(c)
			more = page.next != nil
			select {
			case r.rechecked <- page:
			case <-ctx.Done():
				return
			}
		}
	}
}

// recheckPage puts the denied URLs of one page to the rules.
func (r *run) recheckPage(c *recheck) *rechecked {
	page := &rechecked{mark: c.mark()}
	if c.Rules == nil {
		if c.Rules, page.err = r.storedRules(c); page.err != nil {
			return page
		}
	}
	now := time.Now()
	next, err := r.store.URLs(c.Host, c.from, recheckPage, func(h storage.Head) {
		if h.Last.State != storage.Denied || h.Origin != c.Origin || !c.Rules.Match(h.RequestURI).Allowed {
			return
		}
		page.done = append(page.done, storage.Done{Host: c.Host, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority,
			Outcome: storage.Outcome{State: storage.Retrying, Reason: storage.ReasonRobots, At: now, Due: now}})
	})
	if err != nil {
		page.err = err
		return page
	}
	if next-c.from == recheckPage {
		page.next = binary.BigEndian.AppendUint32(nil, next)
	}
	c.from = next
	return page
}

func (r *run) storedRules(c *recheck) (*robots.Rules, error) {
	host, err := r.store.HostByID(c.Host)
	if err != nil {
		return nil, err
	}
	if int(c.Origin) >= len(host.Queues) {
		return nil, fmt.Errorf("host %s: %w", host.Name, storage.ErrCorrupt)
	}
	encoded, err := r.store.Policy(host.Queues[c.Origin].Origin)
	if err != nil {
		return nil, err
	}
	record, err := robots.DecodeRecord(encoded)
	return record.Rules(r.o.Frontier.Tokens...), err
}
