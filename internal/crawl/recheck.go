package crawl

import (
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// markRecheck begins the names of the marks that say how far the denied URLs
// of an origin have been put to its new rules.
const markRecheck = "recheck/"

// newRecheck is the sweep that puts an origin's denied URLs to its rules: those that are allowed now are due at once.
func (r *run) newRecheck(a frontier.Recheck) *sweep {
	c := &sweep{
		mark: fmt.Sprintf("%s%d/%d", markRecheck, a.Host, a.Origin), host: a.Host, when: storage.In(storage.Denied), below: unbounded,
	}
	c.ready = func() (_ decision, err error) {
		if a.Rules == nil {
			a.Rules, err = r.storedRules(a.Host, a.Origin)
		}
		return func(h *storage.Head, now time.Time) (storage.Outcome, bool) {
			allowed := h.Origin == a.Origin && a.Rules.Match(h.RequestURI).Allowed
			o := h.Last // with what is remembered of the page
			o.State, o.Reason, o.Line, o.Attempts, o.At, o.Due = storage.Retrying, storage.ReasonRobots, 0, 0, now, now
			return o, allowed
		}, err
	}
	return c
}

// openRecheck is the sweep of a mark.
func (r *run) openRecheck(name string) (*sweep, error) {
	var a frontier.Recheck
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, markRecheck), "%d/%d", &a.Host, &a.Origin); err != nil {
		return nil, err
	}
	return r.newRecheck(a), nil
}

func (r *run) addRechecks(asked []frontier.Recheck) {
	for _, a := range asked {
		r.addSweep(r.newRecheck(a))
	}
}

// storedRules are those of the robots record that the store has of an origin.
func (e *Engine) storedRules(id storage.HostID, origin uint8) (*robots.Rules, error) {
	host, err := e.store.HostByID(id)
	if err != nil {
		return nil, err
	}
	if int(origin) >= len(host.Queues) {
		return nil, fmt.Errorf("host %s: %w", host.Name, storage.ErrCorrupt)
	}
	encoded, err := e.store.Policy(host.Queues[origin].Origin)
	if err != nil {
		return nil, err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return nil, err
	}
	rules, err := e.rules(&record)
	if err != nil { // what is denied stays denied until another version of the file has come
		e.log.Error("a stored robots.txt cannot be compiled", "origin", host.Queues[origin].Origin.String(), "error",
			err)
		return robots.Record{}.Rules(), nil
	}
	return rules, nil
}
