package storage

import (
	"encoding/binary"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// rowVersion is the first byte of a host's row.
const rowVersion = 4

// The parts of the row that may follow the recent outcomes.
const (
	rowPlain    = 1 << iota // hostRow.plain
	rowQueries              // hostRow.queries
	rowDigests              // hostRow.digests
	rowSite                 // hostRow.site
	rowErrors               // hostRow.errors
	rowPayloads             // hostRow.payloads
	rowWall                 // hostRow.wall
)

// rowRequisites is set with the number of origins if hostRow.requisites follow the first ordinal.
const rowRequisites = 0x80

// Bounds of the tail, beyond which whole blocks of it move out of the host's row.
const (
	maxTail      = 4 * blockSize
	maxTailBytes = 8 << 10
)

// originRow is one origin of a host, with its queue.
type originRow struct {
	secure bool
	port   uint16
	cursor uint32 // ordinals below it have an outcome or a lease, or are of other origins
	Backlog
}

func (o originRow) origin(host string) weburl.Origin {
	if o.secure {
		return weburl.Origin{Scheme: "https", Host: host, Port: o.port}
	}
	return weburl.Origin{Scheme: "http", Host: host, Port: o.port}
}

// recentOutcome is an outcome that is in the row.
type recentOutcome struct {
	ordinal uint32
	body    []byte
}

// hostRow is a host's row. Its slices may point into the database page that it was decoded from, so
// it is valid during the transaction only.
type hostRow struct {
	id         HostID
	name       []byte
	next       uint32 // the next ordinal to give out
	first      uint32 // ordinals below it are deleted
	spilled    uint32 // ordinals below it are in the url and seen buckets
	stateTop   uint32 // ordinals from here on have no row in the state bucket
	counts     [numStates]uint32
	requisites [numStates]uint32 // those of counts that are requisites
	requests   uint32
	bytes      uint64
	politeness []byte
	origins    []originRow
	recent     []recentOutcome
	plain      uint32 // ordinals below it are of version 1, where the cursor passes every priority
	queries    tally  // different queries, by path
	digests    tally  // pages, by digest
	site       []byte // encoded by internal/rules/recrawl
	errors     errorCounts
	payloads   recentPayloads
	wall       []byte // encoded by internal/rules/wall
	tail       []byte // encoded entries from spilled to next
}

// begin makes r the row of a new host.
func (r *hostRow) begin(id HostID, name string) {
	*r = hostRow{
		id: id, name: []byte(name), origins: r.origins[:0], recent: r.recent[:0],
		queries: r.queries[:0], digests: r.digests[:0], errors: r.errors[:0],
	}
}

// decodeHead decodes all but the recent outcomes and the tail, which is enough for a walk over many
// hosts. It returns the undecoded rest.
func (r *hostRow) decodeHead(id HostID, b []byte) ([]byte, bool) {
	d := wire.NewDecoder(b)
	version := d.Byte()
	if version == 0 || version > rowVersion {
		return nil, false
	}
	r.id, r.site, r.wall = id, nil, nil
	origins := int(d.Byte())
	hasRequisites := origins&rowRequisites != 0
	origins &^= rowRequisites
	r.next, r.spilled, r.stateTop = d.Uint32(), d.Uint32(), d.Uint32()
	for i := range r.counts {
		r.counts[i] = d.Uint32()
	}
	if r.first = 0; version >= 4 {
		r.first = d.Uint32()
	}
	r.requisites = [numStates]uint32{}
	for i := range r.requisites {
		if hasRequisites {
			r.requisites[i] = d.Uint32()
		}
	}
	r.requests, r.bytes = d.Uint32(), d.Uint64()
	r.name, r.politeness = d.Short(), d.Short()
	r.origins = r.origins[:0]
	for range origins {
		o := originRow{secure: d.Byte() != 0, port: d.Uint16()}
		o.cursor, o.Queued, o.Due, o.NextDue = d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()
		if version >= 3 {
			o.Recrawls, o.NextRecrawl = d.Uint32(), d.Uint32()
		}
		r.origins = append(r.origins, o)
	}
	return d.Rest(), d.OK() && origins <= maxOrigins
}

func (r *hostRow) decode(id HostID, b []byte) bool {
	rest, ok := r.decodeHead(id, b)
	if !ok {
		return false
	}
	d := wire.NewDecoder(rest)
	r.recent = r.recent[:0]
	for range int(d.Byte()) {
		r.recent = append(r.recent, recentOutcome{ordinal: d.Uint32(), body: d.Bytes(int(d.Uint16()))})
	}
	r.plain, r.queries, r.digests, r.errors, r.payloads = 0, r.queries[:0], r.digests[:0], r.errors[:0], nil
	if b[0] == 1 {
		r.plain = r.next
	} else {
		r.decodeExtras(&d)
	}
	r.tail = d.Rest()
	return d.OK()
}

// decodeExtras decodes the parts that most rows do not have.
func (r *hostRow) decodeExtras(d *wire.Decoder) {
	parts := d.Byte()
	if parts&rowPlain != 0 {
		r.plain = d.Uint32()
	}
	if parts&rowQueries != 0 {
		r.queries = decodeTally(d, r.queries, queryKeys)
	}
	if parts&rowDigests != 0 {
		r.digests = decodeTally(d, r.digests, digestKeys)
	}
	if parts&rowSite != 0 {
		r.site = d.Short()
	}
	if parts&rowErrors != 0 {
		r.errors = decodeErrors(d, r.errors)
	}
	if parts&rowPayloads != 0 {
		r.payloads = decodeRecentPayloads(d)
	}
	if parts&rowWall != 0 {
		r.wall = d.Short()
	}
	d.Require(parts < rowWall<<1)
}

// decodePayloads decodes what decodeHead does and the payloads, and skips what is between.
func (r *hostRow) decodePayloads(id HostID, b []byte) bool {
	rest, ok := r.decodeHead(id, b)
	if !ok {
		return false
	}
	d := wire.NewDecoder(rest)
	for range int(d.Byte()) {
		d.Bytes(4)
		d.Bytes(int(d.Uint16()))
	}
	r.payloads = nil
	if b[0] == 1 {
		return d.OK()
	}
	parts := d.Byte()
	if parts&rowPlain != 0 {
		d.Bytes(4)
	}
	if parts&rowQueries != 0 {
		skipCounts(&d, 8)
	}
	if parts&rowDigests != 0 {
		skipCounts(&d, 8)
	}
	if parts&rowSite != 0 {
		d.Short()
	}
	if parts&rowErrors != 0 {
		skipCounts(&d, 1)
	}
	if parts&rowPayloads != 0 {
		r.payloads = decodeRecentPayloads(&d)
	}
	return d.OK()
}

func (r *hostRow) appendExtras(b []byte) []byte {
	at := len(b)
	b = append(b, 0)
	has := func(part byte, there bool) bool {
		if there {
			b[at] |= part
		}
		return there
	}
	if has(rowPlain, r.plain != 0) {
		b = binary.BigEndian.AppendUint32(b, r.plain)
	}
	if has(rowQueries, len(r.queries) > 0) {
		b = r.queries.append(b)
	}
	if has(rowDigests, len(r.digests) > 0) {
		b = r.digests.append(b)
	}
	if has(rowSite, len(r.site) > 0) {
		b = appendShort(b, string(r.site))
	}
	if has(rowErrors, len(r.errors) > 0) {
		b = r.errors.append(b)
	}
	if has(rowPayloads, len(r.payloads) > 0) {
		b = r.payloads.append(b)
	}
	if has(rowWall, len(r.wall) > 0) {
		b = appendShort(b, string(r.wall))
	}
	return b
}

// prioritized reports whether a URL, while it is queued, has a due row and is not behind the cursor.
func (r *hostRow) prioritized(ordinal uint32, priority int8) bool {
	return priority != 0 && ordinal >= r.plain
}

func (r *hostRow) append(b []byte) []byte {
	b = append(b, rowVersion, byte(len(r.origins)))
	if r.requisites != [numStates]uint32{} {
		b[len(b)-1] |= rowRequisites
	}
	b = binary.BigEndian.AppendUint32(b, r.next)
	b = binary.BigEndian.AppendUint32(b, r.spilled)
	b = binary.BigEndian.AppendUint32(b, r.stateTop)
	for _, n := range r.counts {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = binary.BigEndian.AppendUint32(b, r.first)
	if r.requisites != [numStates]uint32{} {
		for _, n := range r.requisites {
			b = binary.BigEndian.AppendUint32(b, n)
		}
	}
	b = binary.BigEndian.AppendUint32(b, r.requests)
	b = binary.BigEndian.AppendUint64(b, r.bytes)
	b = append(append(b, byte(len(r.name))), r.name...)
	b = append(append(b, byte(len(r.politeness))), r.politeness...)
	for _, o := range r.origins {
		secure := byte(0)
		if o.secure {
			secure = 1
		}
		b = append(b, secure)
		b = binary.BigEndian.AppendUint16(b, o.port)
		b = binary.BigEndian.AppendUint32(b, o.cursor)
		b = binary.BigEndian.AppendUint32(b, o.Queued)
		b = binary.BigEndian.AppendUint32(b, o.Due)
		b = binary.BigEndian.AppendUint32(b, o.NextDue)
		b = binary.BigEndian.AppendUint32(b, o.Recrawls)
		b = binary.BigEndian.AppendUint32(b, o.NextRecrawl)
	}
	b = append(b, byte(len(r.recent)))
	for _, o := range r.recent {
		b = binary.BigEndian.AppendUint32(b, o.ordinal)
		b = binary.BigEndian.AppendUint16(b, uint16(len(o.body)))
		b = append(b, o.body...)
	}
	return append(r.appendExtras(b), r.tail...)
}

// originIndex returns the index of an origin, which it adds if necessary. It returns false if the
// host has too many origins.
func (r *hostRow) originIndex(o weburl.Origin) (uint8, bool) {
	secure := o.Scheme == "https"
	for i := range r.origins {
		if r.origins[i].port == o.Port && r.origins[i].secure == secure {
			return uint8(i), true
		}
	}
	if len(r.origins) == maxOrigins {
		return 0, false
	}
	r.origins = append(r.origins, originRow{secure: secure, port: o.Port})
	return uint8(len(r.origins) - 1), true
}

// backlog returns what waits in all queues of the host.
func (r *hostRow) backlog() (b Backlog) {
	for i := range r.origins {
		b.add(&r.origins[i].Backlog)
	}
	return b
}

// recentOutcome returns the encoded outcome of an ordinal if it is in the row.
func (r *hostRow) recentOutcome(ordinal uint32) ([]byte, bool) {
	for i := range r.recent {
		if r.recent[i].ordinal == ordinal {
			return r.recent[i].body, true
		}
	}
	return nil, false
}
