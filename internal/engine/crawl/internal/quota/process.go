// Package quota shares what the engines of one process may request together: the requests of workers and the lookups
// that may be in flight, the requests a second, and the received bytes a second.
package quota

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits are those of all engines of a process together. In a cluster, MaxRate is that of all nodes.
type Limits struct {
	Workers int     // requests that workers may have in flight
	Lookups int     // of names that may be in flight
	MaxRate float64 // requests a second; 0: no limit
}

// bandwidthLimiter limits the received bytes a second of a process, and of each host; 0: no limit.
type bandwidthLimiter interface {
	SetBandwidth(all int64, ofHost func(host string) int64)
}

// Process is the quota of a process. It is safe for concurrent use.
type Process struct {
	now    func() time.Time
	client bandwidthLimiter

	mu        sync.Mutex // guards what follows; nothing blocks under it
	limits    Limits
	part      float64 // of limits and bandwidth that this process has in a cluster, from 0 to 1
	bandwidth int64   // bytes a second of all nodes; 0: no limit
	ofHost    func(host string) int64
	rate      rateLimit
	used      int       // requests that workers have in flight
	lookups   int       // of names that are in flight
	waiting   []*Engine // that have something to fetch and were refused, the longest wait first
	lending   []*Engine // that wait for a request of a worker, or a lookup, to end
}

// NewProcess returns a quota that a process has for itself.
func NewProcess(l Limits, client bandwidthLimiter, now func() time.Time) *Process {
	return &Process{now: now, client: client, limits: l, part: 1, rate: newRateLimit(l.MaxRate)}
}

// Change puts other limits in force.
func (p *Process) Change(l Limits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = l
	p.rate.set(p.ratePart(), p.now())
	p.wakeUp(0)
}

// SetBandwidth limits the received bytes a second of all nodes of a cluster, and of each host.
func (p *Process) SetBandwidth(all int64, ofHost func(host string) int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bandwidth, p.ofHost = all, ofHost
	p.client.SetBandwidth(p.bandwidthPart(), ofHost)
}

// InForce returns the limits of requests and of bytes a second of this process.
func (p *Process) InForce() (perSecond float64, bandwidth int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ratePart(), p.bandwidthPart()
}

// Where a limit is 0 there is none, so a part of nothing is the least that stands still.
const (
	leastRate      = 1e-9
	leastBandwidth = 1
)

// ratePart is the part of the requests a second.
func (p *Process) ratePart() float64 {
	if p.limits.MaxRate == 0 {
		return 0
	}
	return max(p.limits.MaxRate*p.part, leastRate)
}

// bandwidthPart is the part of the bytes a second.
func (p *Process) bandwidthPart() int64 {
	if p.bandwidth == 0 {
		return 0
	}
	return max(int64(float64(p.bandwidth)*p.part), leastBandwidth)
}

// wakeUp wakes the engines that wait, from an index in the queue on: each finds out for itself whether
// its turn has come. The caller holds the lock.
func (p *Process) wakeUp(from int) {
	for _, w := range p.waiting[from:] {
		w.Ring()
	}
	for _, w := range p.lending {
		w.lends = false
		w.Ring()
	}
	p.lending = p.lending[:0]
}

// rateLimit is a limit of requests a second. Those of a tenth of a second may be handed out at once, one at least.
type rateLimit struct {
	perSecond float64
	limiter   *rate.Limiter // nil: no limit
}

// newRateLimit returns a limit of requests a second; 0: none.
func newRateLimit(perSecond float64) rateLimit {
	l := rateLimit{perSecond: perSecond}
	if perSecond > 0 {
		l.limiter = rate.NewLimiter(rate.Limit(perSecond), max(int(perSecond/10), 1))
	}
	return l
}

// set puts another limit in force. It begins without a burst, so that changes bring no more requests.
func (l *rateLimit) set(perSecond float64, now time.Time) {
	if perSecond == l.perSecond {
		return
	}
	if *l = newRateLimit(perSecond); l.limiter != nil {
		l.limiter.ReserveN(now, l.limiter.Burst())
	}
}

// wait returns when there is one more token than so many; zero: now.
func (l *rateLimit) wait(ahead int, now time.Time) time.Time {
	if l.limiter == nil || l.limiter.TokensAt(now) >= float64(1+ahead) {
		return time.Time{}
	}
	tokens := l.limiter.ReserveN(now, min(1+ahead, l.limiter.Burst()))
	next := now.Add(tokens.DelayFrom(now) + 1) // the limiter rounds down
	tokens.CancelAt(now)
	return next
}

// take takes a token.
func (l *rateLimit) take(now time.Time) {
	if l.limiter != nil {
		l.limiter.AllowN(now, 1)
	}
}
