//go:build !core

package shards

import "github.com/amble-crawler/amble/internal/engine/crawl"

// Progress is what the engines of a node do, all of them together.
type Progress struct {
	Open        int // engines
	Pages       uint64
	Requisites  uint64 // what pages are made of
	Bytes       uint64 // of all bodies
	PagesPerSec float64
	Queued      int // URLs that will still be fetched, of the open shards
	InFlight    int // requests
	// Stalled is how many engines can write nothing, and Reason why one of them cannot.
	Stalled int
	Reason  string
}

// Progress returns what the engines do. Pages, Requisites and Bytes are those since the node was opened, of engines
// that have ended too.
func (n *Node) Progress() Progress { return n.engines.progress() }

func (e *engines) progress() Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := Progress{Pages: e.ended.Pages, Requisites: e.ended.Requisites, Bytes: e.ended.Bytes}
	for _, r := range e.open {
		if engine := r.engine.Load(); engine != nil {
			p.add(engine.Status())
		}
	}
	return p
}

// add counts an open engine.
func (p *Progress) add(s crawl.Status) {
	p.Open++
	p.Pages += s.Run.Pages
	p.Requisites += s.Run.Requisites
	p.Bytes += s.Run.Bytes
	p.PagesPerSec += s.PagesPerSec
	p.Queued += s.URLs["queued"] + s.URLs["retrying"]
	p.InFlight += s.InFlight
	if s.State == "stalled" {
		p.Stalled++
		p.Reason = s.Reason
	}
}
