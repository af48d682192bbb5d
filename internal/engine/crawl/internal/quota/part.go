//go:build !core

package quota

// SetPart makes this process use a part of the limits of requests and of bytes a second, from 0 to 1. At
// first it is all.
func (p *Process) SetPart(part float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if part == p.part {
		return
	}
	p.part = part
	p.rate.set(p.ratePart(), p.now())
	p.client.SetBandwidth(p.bandwidthPart(), p.ofHost)
	p.wakeUp(0)
}
