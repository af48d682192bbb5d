package frontier

import (
	"strings"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// heads are queued URLs in memory, in the order of discovery. There are few of them for each of many hosts, so their texts
// lie in one.
type heads struct {
	list []head
	text string // path and query of all that were read, those that were taken since included
}

// head is a queued URL in memory: a storage.Head without the last outcome, which it
// has none of, without its origin, which is that of the queue, and without the text
// by which only the store compares it.
type head struct {
	start      uint32 // of its text, which ends where the next one starts
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
		ordinal: e.Ordinal, viaHost: e.ViaHost, viaOrdinal: e.ViaOrdinal,
		depth: e.Depth, redirects: e.Redirects, priority: e.Priority, seed: e.Seed, sitemap: e.Sitemap, frequency: e.Frequency,
	}
	if !e.FirstSeen.IsZero() {
		h.firstSeen = uint32(e.FirstSeen.Unix())
	}
	return h
}

// first is the ordinal of the first URL; there has to be one.
func (h *heads) first() uint32 { return h.list[0].ordinal }

// bytes is what the heads take in memory.
func (h *heads) bytes() int { return 28*cap(h.list) + len(h.text) }

// end is where the text of the i-th URL ends.
func (h *heads) end(i int) int {
	if i+1 < len(h.list) {
		return int(h.list[i+1].start)
	}
	return len(h.text)
}

// entry is the i-th URL, which is of the given origin.
func (h *heads) entry(i int, origin uint8) storage.Entry {
	x := &h.list[i]
	e := storage.Entry{
		RequestURI: h.text[x.start:h.end(i)], Ordinal: x.ordinal, Origin: origin, ViaHost: x.viaHost, ViaOrdinal: x.viaOrdinal,
		Depth: x.depth, Redirects: x.redirects, Priority: x.priority, Seed: x.seed, Sitemap: x.sitemap, Frequency: x.frequency,
	}
	if x.firstSeen > 0 {
		e.FirstSeen = time.Unix(int64(x.firstSeen), 0)
	}
	return e
}

// take removes the first URL.
func (h *heads) take(origin uint8) storage.Entry {
	e := h.entry(0, origin)
	h.list = h.list[1:]
	return e
}

// insert puts URLs before the i-th. It makes the list and its text anew, without what was taken.
func (h *heads) insert(i int, more []storage.Head) {
	size := 0
	for j := range more {
		size += len(more[j].RequestURI)
	}
	if len(h.list) > 0 {
		size += len(h.text) - int(h.list[0].start)
	}
	var text strings.Builder
	text.Grow(size)
	list := make([]head, 0, len(h.list)+len(more))
	push := func(x head, uri string) {
		x.start = uint32(text.Len())
		list = append(list, x)
		text.WriteString(uri)
	}
	keep := func(from, to int) {
		for j := from; j < to; j++ {
			push(h.list[j], h.text[h.list[j].start:h.end(j)])
		}
	}
	keep(0, i)
	for j := range more {
		push(newHead(&more[j].Entry), more[j].RequestURI)
	}
	keep(i, len(h.list))
	h.list, h.text = list, text.String()
}

// take removes the next URL of a queue, which has one, and says whether it is
// one of the due ones.
func (q *queue) take() (h storage.Head, due bool) {
	if _, due, _ = q.first(); due {
		h, q.due = q.due[0], q.due[1:]
		return h, true
	}
	return storage.Head{Entry: q.heads.take(q.index)}, false
}

// waits reports whether a URL of the queue is in memory.
func (q *queue) waits() bool { return len(q.due)+len(q.heads.list) > 0 }
