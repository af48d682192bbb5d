package queue

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// entries are new URLs in the order of discovery. There are few of them for each of many hosts, so
// their texts lie in one string.
type entries struct {
	list []entry
	text string // path and query of all that were loaded, those that were taken since included
}

// entry is a new URL: a storage.Head without the last outcome, which it does not have, without its
// origin, which is that of the queue, and without the text by which only the store compares it.
type entry struct {
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
	room       uint8
	from       storage.SeedRef
}

func newEntry(from *storage.Entry) entry {
	e := entry{
		ordinal: from.Ordinal, viaHost: from.ViaHost, viaOrdinal: from.ViaOrdinal,
		depth: from.Depth, redirects: from.Redirects, priority: from.Priority, seed: from.Seed, sitemap: from.Sitemap,
		frequency: from.Frequency, room: from.Room, from: from.From,
	}
	if !from.FirstSeen.IsZero() {
		e.firstSeen = uint32(from.FirstSeen.Unix())
	}
	return e
}

// first is the ordinal of the first URL. There must be one.
func (s *entries) first() uint32 { return s.list[0].ordinal }

// bytes is the memory that the entries take.
func (s *entries) bytes() int { return 36*cap(s.list) + len(s.text) }

// textOf is the text of the i-th URL.
func (s *entries) textOf(i int) string {
	end := len(s.text)
	if i+1 < len(s.list) {
		end = int(s.list[i+1].start)
	}
	return s.text[s.list[i].start:end]
}

// at is the i-th URL as the store knows it.
func (s *entries) at(i int, origin uint8) storage.Entry {
	x := &s.list[i]
	e := storage.Entry{
		RequestURI: s.textOf(i), Ordinal: x.ordinal, Origin: origin, ViaHost: x.viaHost, ViaOrdinal: x.viaOrdinal,
		Depth: x.depth, Redirects: x.redirects, Priority: x.priority, Seed: x.seed, Sitemap: x.sitemap,
		Frequency: x.frequency, Room: x.room, From: x.from,
	}
	if x.firstSeen > 0 {
		e.FirstSeen = time.Unix(int64(x.firstSeen), 0)
	}
	return e
}

// take removes the first URL.
func (s *entries) take(origin uint8) storage.Entry {
	e := s.at(0, origin)
	s.list = s.list[1:]
	return e
}

// takeAt removes the i-th URL.
func (s *entries) takeAt(i int, origin uint8) storage.Entry {
	before := make([]storage.Head, i)
	for n := range before {
		before[n].Entry = s.take(origin)
	}
	e := s.take(origin)
	s.insert(before...)
	return e
}

// insert adds URLs, in rising order and without others between them. It copies the list and its
// text without what was taken.
func (s *entries) insert(more ...storage.Head) {
	at, size := 0, 0
	if len(more) > 0 {
		byOrdinal := func(e entry, ordinal uint32) int { return cmp.Compare(e.ordinal, ordinal) }
		at, _ = slices.BinarySearchFunc(s.list, more[0].Ordinal, byOrdinal)
	}
	for i := range more {
		size += len(more[i].RequestURI)
	}
	if len(s.list) > 0 {
		size += len(s.text) - int(s.list[0].start)
	}
	var text strings.Builder
	text.Grow(size)
	list := make([]entry, 0, len(s.list)+len(more))
	push := func(e entry, uri string) {
		e.start = uint32(text.Len())
		list = append(list, e)
		text.WriteString(uri)
	}
	for i := range at {
		push(s.list[i], s.textOf(i))
	}
	for i := range more {
		push(newEntry(&more[i].Entry), more[i].RequestURI)
	}
	for i := at; i < len(s.list); i++ {
		push(s.list[i], s.textOf(i))
	}
	s.list, s.text = list, text.String()
}
