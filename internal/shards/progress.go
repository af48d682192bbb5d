package shards

// Progress is what the engines of a node do, all of them together.
type Progress struct {
	Open        int // engines
	Pages       uint64
	Bytes       uint64 // of their bodies
	PagesPerSec float64
	Queued      int // URLs that will still be fetched, of the open shards
	InFlight    int // requests
	// Stalled is how many engines can write nothing, and Reason why one of them cannot.
	Stalled int
	Reason  string
}

// Progress returns what the engines do. Pages and Bytes are those since the node was opened, of engines
// that have ended too.
func (n *Node) Progress() Progress { return n.engines.progress() }

func (e *engines) progress() Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.ended
	for _, r := range e.open {
		p.add(r)
	}
	return p
}

// add counts an engine.
func (p *Progress) add(r *run) {
	engine := r.engine.Load()
	if engine == nil {
		return
	}
	s := engine.Status()
	p.Open++
	p.Pages += s.Run.Pages
	p.Bytes += s.Run.Bytes
	p.PagesPerSec += s.PagesPerSec
	p.Queued += s.URLs["queued"] + s.URLs["retrying"]
	p.InFlight += s.InFlight
	if s.State == "stalled" {
		p.Stalled++
		p.Reason = s.Reason
	}
}

// end counts an engine that has ended.
func (p *Progress) end(r *run) {
	var last Progress
	last.add(r)
	p.Pages += last.Pages
	p.Bytes += last.Bytes
}
