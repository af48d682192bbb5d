package crawl

// processLimits are the limits of requests and of received bytes a second. In a cluster they are those of
// all nodes, and this process has a part of them.
type processLimits struct {
	part      float64 // from 0 to 1
	perSecond float64 // requests; 0: no limit
	bandwidth int64   // bytes a second; 0: no limit
	ofHost    func(host string) int64
}

// Where a limit is 0 there is none, so a part of nothing is the least that stands still.
const (
	leastRate      = 1e-9
	leastBandwidth = 1
)

// ratePart is the part of the requests a second.
func (l *processLimits) ratePart() float64 {
	if l.perSecond == 0 {
		return 0
	}
	return max(l.perSecond*l.part, leastRate)
}

// bandwidthPart is the part of the bytes a second.
func (l *processLimits) bandwidthPart() int64 {
	if l.bandwidth == 0 {
		return 0
	}
	return max(int64(float64(l.bandwidth)*l.part), leastBandwidth)
}

// SetPart makes this process use a part of the limits of requests and of bytes a second, from 0 to 1. At
// first it is all.
func (s *Shared) SetPart(part float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if part == s.limits.part {
		return
	}
	s.limits.part = part
	s.rate.set(s.limits.ratePart(), s.now())
	s.client.SetBandwidth(s.limits.bandwidthPart(), s.limits.ofHost)
	s.wakeUp(0)
}

// setBandwidth limits the received bytes a second of all nodes of a cluster, and of each host.
func (s *Shared) setBandwidth(all int64, ofHost func(host string) int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.bandwidth, s.limits.ofHost = all, ofHost
	s.client.SetBandwidth(s.limits.bandwidthPart(), ofHost)
}

// inForce returns the limits of this process.
func (s *Shared) inForce() (perSecond float64, bandwidth int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.ratePart(), s.limits.bandwidthPart()
}
