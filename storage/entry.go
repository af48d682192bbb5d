package storage

import (
	"encoding/binary"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// blockSize is how many URLs, and how many outcomes, are in one row.
const blockSize = 16

func blockOf(ordinal uint32) uint32 { return ordinal &^ (blockSize - 1) }

// Flags of an encoded entry.
const (
	entryOrigin   = 0x1f // index of the origin
	entrySeed     = 0x20
	entryFarVia   = 0x40 // the page it was found on is of another host
	entryExtended = 0x80 // redirects and priority follow
)

// depthSession is set with the depth of a URL that has a session id. The entry's text is the one
// without; the full one follows at the end.
const depthSession = 1 << 16

// depthSitemap is set with the depth of a URL that something calls a sitemap. depthFrequency and
// depthRoom are the offsets of the bits of a page's frequency and of the room of a requisite.
const (
	depthSitemap   = 1 << 17
	depthFrequency = 18
	depthRoom      = 21
)

// entryFrom is set with the number of redirects if a SeedRef follows the priority.
const (
	entryFrom     = 0x80
	entryFromSize = len(SeedID{}) + 1
)

// maxOrigins is how many origins (scheme and port) a host may have.
const maxOrigins = entryOrigin + 1

// appendEntry encodes one URL of a host.
func appendEntry(b []byte, host HostID, e *Entry) []byte {
	flags := e.Origin
	if e.Seed {
		flags |= entrySeed
	}
	far := e.ViaHost != NoHost && e.ViaHost != host
	if far {
		flags |= entryFarVia
	}
	extended := e.Redirects != 0 || e.Priority != 0 || e.From != SeedRef{}
	if extended {
		flags |= entryExtended
	}
	b = append(b, flags)
	if extended {
		b = append(b, min(e.Redirects, entryFrom-1), byte(e.Priority))
		if e.From != (SeedRef{}) {
			b[len(b)-2] |= entryFrom
			b = append(append(b, e.From.ID[:]...), e.From.Outside)
		}
	}
	text, depth := e.RequestURI, uint64(e.Depth)
	if e.Stripped != "" {
		text, depth = e.Stripped, depth|depthSession
	}
	if e.Sitemap {
		depth |= depthSitemap
	}
	depth |= uint64(e.Frequency&7)<<depthFrequency | uint64(e.Room)<<depthRoom
	b = binary.AppendUvarint(b, uint64(len(text)))
	b = append(b, text...)
	b = binary.AppendUvarint(b, depth)
	b = binary.BigEndian.AppendUint32(b, Seconds(e.FirstSeen))
	switch {
	case e.ViaHost == NoHost:
		b = append(b, 0)
	case far:
		b = binary.AppendUvarint(b, uint64(e.ViaOrdinal)+1)
		b = binary.BigEndian.AppendUint32(b, uint32(e.ViaHost))
	default:
		b = binary.AppendUvarint(b, uint64(e.ViaOrdinal)+1)
	}
	if e.Stripped != "" {
		b = binary.AppendUvarint(b, uint64(len(e.RequestURI)))
		b = append(b, e.RequestURI...)
	}
	return b
}

// entryKey reads the flags and the identifying text of an encoded entry.
func entryKey(d *wire.Decoder) (flags byte, text []byte) {
	flags = d.Byte()
	if flags&entryExtended != 0 {
		if facts := d.Bytes(2); len(facts) == 2 && facts[0]&entryFrom != 0 {
			d.Bytes(entryFromSize)
		}
	}
	return flags, d.Long()
}

// skipFacts skips what follows the identifying text of an entry. If the entry has a session id, it
// returns the full text.
func skipFacts(d *wire.Decoder, flags byte) (full []byte, session bool) {
	session = d.Uvarint()&depthSession != 0
	d.Bytes(4)
	d.Uvarint()
	if flags&entryFarVia != 0 {
		d.Bytes(4)
	}
	if session {
		full = d.Long()
	}
	return full, session
}

// skipEntry skips an encoded entry. It fails for one with a session id and no text without.
func skipEntry(d *wire.Decoder) {
	flags, text := entryKey(d)
	_, session := skipFacts(d, flags)
	d.Require(!session || len(text) > 0)
}

// sessionURI returns the full path and query of the first encoded entry, or false if that is its identifying text.
func sessionURI(b []byte) ([]byte, bool) {
	d := wire.NewDecoder(b)
	flags, _ := entryKey(&d)
	full, session := skipFacts(&d, flags)
	return full, session && d.OK()
}

// decodeEntry decodes the first encoded entry. The URI is a copy.
func decodeEntry(b []byte, host HostID, ordinal uint32) (Entry, []byte, bool) {
	d := wire.NewDecoder(b)
	flags, uri := entryKey(&d)
	if !d.OK() {
		return Entry{}, nil, false
	}
	e := Entry{Ordinal: ordinal, Origin: flags & entryOrigin, RequestURI: string(uri), Seed: flags&entrySeed != 0}
	if flags&entryExtended != 0 {
		e.Redirects, e.Priority = b[1]&^entryFrom, int8(b[2])
		if b[1]&entryFrom != 0 {
			e.From = SeedRef{ID: SeedID(b[3 : 3+len(SeedID{})]), Outside: b[2+entryFromSize]}
		}
	}
	depth := d.Uvarint()
	e.Depth, e.Sitemap, e.Frequency = uint16(depth), depth&depthSitemap != 0, Frequency(depth>>depthFrequency&7)
	e.Room = uint8(depth >> depthRoom)
	e.FirstSeen = FromSeconds(d.Uint32())
	if via := d.Uvarint(); via != 0 {
		e.ViaHost, e.ViaOrdinal = host, uint32(via-1)
	}
	if flags&entryFarVia != 0 {
		if e.ViaHost = HostID(d.Uint32()); e.ViaHost == NoHost {
			e.ViaOrdinal = 0
		}
	}
	if depth&depthSession != 0 {
		e.Stripped, e.RequestURI = e.RequestURI, string(d.Long())
	}
	return e, d.Rest(), d.OK() && !(depth&depthSession != 0 && e.Stripped == "")
}

// nthEntry returns the encoded entries from the n-th on.
func nthEntry(b []byte, n int) ([]byte, bool) {
	d := wire.NewDecoder(b)
	for ; n > 0 && d.OK(); n-- {
		skipEntry(&d)
	}
	return d.Rest(), d.Len() > 0
}

// sameURL reports whether the first encoded entry has the given origin and identifying text.
func sameURL(b []byte, origin uint8, uri string) bool {
	d := wire.NewDecoder(b)
	flags, text := entryKey(&d)
	return d.OK() && flags&entryOrigin == origin && len(text) == len(uri) && string(text) == uri
}

// countEntries counts the encoded entries of a block.
func countEntries(b []byte) (n int, ok bool) {
	d := wire.NewDecoder(b)
	for ; d.Len() > 0; n++ {
		skipEntry(&d)
	}
	return n, d.OK()
}
