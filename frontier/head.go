package frontier

import (
	"time"

	"github.com/amble-crawler/amble/storage"
)

// head is a queued URL in memory: a storage.Head without the last outcome, which it
// has none of, without its origin, which is that of the queue, and without the text
// by which only the store compares it.
type head struct {
	uri        string
	ordinal    uint32
	viaHost    storage.HostID
	viaOrdinal uint32
	firstSeen  uint32 // Unix seconds; 0: unknown
	depth      uint16
	redirects  uint8
	priority   int8
	seed       bool
	sitemap    bool
	frequency  storage.Frequency
}

func newHead(e *storage.Entry) head {
	h := head{
		uri: e.RequestURI, ordinal: e.Ordinal, viaHost: e.ViaHost, viaOrdinal: e.ViaOrdinal,
		depth: e.Depth, redirects: e.Redirects, priority: e.Priority, seed: e.Seed, sitemap: e.Sitemap, frequency: e.Frequency,
	}
	if !e.FirstSeen.IsZero() {
		h.firstSeen = uint32(e.FirstSeen.Unix())
	}
	return h
}

func (h *head) entry(origin uint8) storage.Entry {
	e := storage.Entry{
		RequestURI: h.uri, Ordinal: h.ordinal, Origin: origin, ViaHost: h.viaHost, ViaOrdinal: h.viaOrdinal,
		Depth: h.depth, Redirects: h.redirects, Priority: h.priority, Seed: h.seed, Sitemap: h.sitemap, Frequency: h.frequency,
	}
	if h.firstSeen > 0 {
		e.FirstSeen = time.Unix(int64(h.firstSeen), 0)
	}
	return e
}

// push appends a URL to those that are read.
func (q *queue) push(e *storage.Entry) { q.heads = append(q.heads, newHead(e)) }

// take removes the next URL of a queue, which has one, and says whether it is
// one of the due ones.
func (q *queue) take() (h storage.Head, due bool) {
	if _, due, _ = q.first(); due {
		h, q.due = q.due[0], q.due[1:]
		return h, true
	}
	h.Entry, q.heads = q.heads[0].entry(q.index), q.heads[1:]
	return h, false
}

// waits reports whether a URL of the queue is in memory.
func (q *queue) waits() bool { return len(q.due)+len(q.heads) > 0 }
