package fetch

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// maxAbsence bounds how long the absence of a name is cached. RFC 2308, section 5, allows hours,
// but a name that is just being set up has to be resolved again soon.
const maxAbsence = 5 * time.Minute

// resolutions caches the results of resolving names, the absence of addresses too, for their time
// to live. It is bounded in number and safe for concurrent use.
type resolutions struct {
	max int

	mu    sync.Mutex // guards what follows; nothing blocks under it
	known map[string]*list.Element
	lru   *list.List // of *resolved, the least recently used first
}

// resolved is the result of resolving a name.
type resolved struct {
	host  string
	every bool // what it has of both families
	res   Resolution
	kind  Kind
	err   error
	until time.Time
}

func newResolutions(max int) *resolutions {
	return &resolutions{max: max, known: make(map[string]*list.Element), lru: list.New()}
}

// get returns the cached result for host, of both families if every address is wanted. Its TTL is the
// remaining time.
func (c *resolutions) get(host string, every bool, now time.Time) (Resolution, Kind, error, bool) {
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
	if every && !r.every {
		return Resolution{}, 0, nil, false
	}
	c.lru.MoveToBack(e)
	return Resolution{Addrs: r.res.Addrs, Aliases: r.res.Aliases, TTL: left, Remembered: true}, r.kind, r.err, true
}

// put caches a result that has a time to live.
func (c *resolutions) put(host string, every bool, now time.Time, res Resolution, kind Kind, err error) {
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
	if c.lru.Len() >= c.max {
		c.removeLocked(c.lru.Front())
	}
	host = strings.Clone(host)
	c.known[host] = c.lru.PushBack(
		&resolved{host: host, every: every || err != nil, res: res, kind: kind, err: err, until: now.Add(hold)})
}

func (c *resolutions) removeLocked(e *list.Element) {
	delete(c.known, c.lru.Remove(e).(*resolved).host)
}
