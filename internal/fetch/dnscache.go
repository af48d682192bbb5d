package fetch

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// maxAbsence bounds how long the absence of a name is remembered (RFC 2308,
// section 5, allows hours): a name that is just being set up is asked for again.
const maxAbsence = 5 * time.Minute

// resolutions remembers what names resolved to, the absence of addresses too, for
// as long as the answers hold. It is bounded in number and safe for concurrent use.
type resolutions struct {
	max int

	mu    sync.Mutex // guards what follows; nothing blocks under it
	known map[string]*list.Element
	order *list.List // of *resolved, the longest unused first
}

// resolved is what a name resolved to.
type resolved struct {
	host  string
	res   Resolution
	kind  Kind
	err   error
	until time.Time
}

func newResolutions(max int) *resolutions {
	return &resolutions{max: max, known: make(map[string]*list.Element), order: list.New()}
}

// get returns what is known of host. Its TTL is what is left of it.
func (c *resolutions) get(host string, now time.Time) (Resolution, Kind, error, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[host]
	if e == nil {
		return Resolution{}, 0, nil, false
	}
	r := e.Value.(*resolved)
	left := r.until.Sub(now)
	if left <= 0 {
		c.removeLocked(e)
		return Resolution{}, 0, nil, false
	}
	c.order.MoveToBack(e)
	return Resolution{Addrs: r.res.Addrs, TTL: left, Remembered: true}, r.kind, r.err, true
}

// put remembers an answer that tells how long it holds.
func (c *resolutions) put(host string, now time.Time, res Resolution, kind Kind, err error) {
	if c.max == 0 || res.TTL <= 0 {
		return
	}
	hold := res.TTL
	if err != nil {
		hold = min(hold, maxAbsence)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.known[host]; e != nil {
		c.removeLocked(e)
	}
	if c.order.Len() >= c.max {
		c.removeLocked(c.order.Front())
	}
	host = strings.Clone(host)
	c.known[host] = c.order.PushBack(&resolved{host: host, res: res, kind: kind, err: err, until: now.Add(hold)})
}

func (c *resolutions) removeLocked(e *list.Element) {
	delete(c.known, c.order.Remove(e).(*resolved).host)
}
