package storage

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/internal/wire"
)

// ErrRecord says that a record of the log cannot be read.
var ErrRecord = fmt.Errorf("%w: a record of the log cannot be read", ErrCorrupt)

// recordDecoder reads a record. Its bytes may be anything.
type recordDecoder struct {
	wire.Decoder
	items  int // left
	memory int // bytes of URLs left
}

// decodeRecord is the inverse of record.append. Fingerprints are missing. Slices are parts of b.
// The error is ErrNewer for a record of a newer version, or ErrRecord.
func decodeRecord(b []byte) (*record, error) {
	if len(b) > MaxRecord {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrRecord, len(b), MaxRecord)
	}
	d := recordDecoder{wire.NewDecoder(b), maxRecordItems, maxRecordMemory}
	switch version := d.Byte(); {
	case !d.OK() || version == 0:
		return nil, fmt.Errorf("%w: it has no version", ErrRecord)
	case version > RecordVersion:
		return nil, fmt.Errorf("a record of the log: %w (its version is %d, this amble reads up to %d): "+
			"use a newer amble on this node", ErrNewer, version, RecordVersion)
	}
	r := new(record)
	flags := d.Byte()
	d.Require(flags&^recordHasKey == 0)
	r.number = d.Uvarint()
	d.Require(r.number > 0)
	copy(r.writer[:], d.Bytes(len(r.writer)))
	if flags&recordHasKey != 0 {
		r.key = d.Bytes(keySize)
	}
	for last := byte(0); d.OK() && d.Len() > 0; {
		section := d.Byte()
		body := d.Long()
		d.Require(section > last && section < numSections && len(body) > 0)
		if !d.OK() {
			break
		}
		s := recordDecoder{wire.NewDecoder(body), d.items, d.memory}
		s.section(section, r)
		if err := s.End(); err != nil {
			return nil, fmt.Errorf("%w: section %d: %w", ErrRecord, section, err)
		}
		last, d.items, d.memory = section, s.items, s.memory
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return r, nil
}

// more reports whether another item follows, and counts it.
func (d *recordDecoder) more() bool {
	if d.Len() == 0 {
		return false
	}
	return d.item()
}

func (d *recordDecoder) item() bool {
	d.items--
	d.Require(d.items >= 0)
	return d.OK()
}

func (d *recordDecoder) section(section byte, r *record) {
	b := &r.batch
	switch section {
	case sectionLimits:
		r.limits = limits{d.uint32(), d.uint32(), d.uint32()}
		d.Require(r.limits != limits{})
	case sectionFound:
		b.Found = d.found()
	case sectionDone:
		b.Done = d.done()
	case sectionHosts:
		b.Hosts = d.hosts()
	case sectionPolicies:
		b.Policies = d.policies()
	case sectionRobotsHistory:
		b.RobotsHistory = d.policies()
	case sectionEnsure:
		for d.more() {
			b.Ensure = append(b.Ensure, d.text())
		}
	case sectionPlainSeeds:
		for d.more() {
			b.Seeds = append(b.Seeds, SeedRow{d.text(), []byte{}})
		}
	case sectionSeeds:
		for d.more() {
			s := SeedRow{URL: d.text(), Value: d.Long()}
			if len(s.Value) == 0 {
				s.Value = nil
			}
			b.Seeds = append(b.Seeds, s)
		}
	case sectionRefused:
		for d.more() {
			b.Refused = append(b.Refused, Refused{Reason: Trap(d.Byte()), Host: d.text(), URL: d.url()})
		}
	case sectionPayloads:
		b.Payloads = d.payloads()
	case sectionPurges:
		for d.more() {
			b.Purges = append(b.Purges,
				Purge{Host: HostID(d.uint32()), Below: d.uint32(), From: d.Uvarint(), To: d.Uvarint()})
		}
	case sectionMarks:
		b.Marks = d.marks(false)
	case sectionLocal:
		r.local = d.marks(true)
	case sectionNotices:
		r.notices = d.notices()
	}
}

func (d *recordDecoder) uint32() uint32 { return uint32(d.UvarintMax(math.MaxUint32)) }

func (d *recordDecoder) text() string { return string(d.Long()) }

// host reads a host id behind another.
func (d *recordDecoder) host(before HostID) HostID {
	id := int64(before) + d.Varint()
	d.Require(0 <= id && id <= math.MaxUint32)
	return HostID(id)
}

// url reads the text of a URL. No text is the zero URL.
func (d *recordDecoder) url() weburl.URL {
	text := d.text()
	if text == "" {
		return weburl.URL{}
	}
	u, err := weburl.Parse(text)
	d.Require(err == nil && u.String() == text)
	return u
}

func (d *recordDecoder) outcome() (o Outcome) {
	o, rest, ok := decodeOutcome(d.Long())
	d.Require(ok && len(rest) == 0)
	return o
}

func (d *recordDecoder) found() (all []Found) {
	var last foundContext
	for d.more() {
		f := d.discovery(&last)
		if !d.OK() {
			return nil
		}
		all = append(all, f)
	}
	return all
}

func (d *recordDecoder) discovery(last *foundContext) (f Found) {
	flags, more := d.Byte(), byte(0)
	d.Require(flags < 1<<numFoundFlags)
	if flags&foundMore != 0 {
		more = d.Byte()
		d.Require(0 < more && more < 1<<numFoundMore)
	}
	if flags&foundOrigin != 0 {
		last.origin = d.origin()
	}
	if flags&foundPage != 0 {
		last.via, last.ordinal = d.host(last.via), d.uint32()
		last.depth = uint16(d.UvarintMax(math.MaxUint16))
		at := int64(last.at) + d.Varint()
		d.Require(0 <= at && at <= math.MaxUint32)
		last.at = uint32(at)
	}
	shared := int(d.UvarintMax(uint64(len(last.uri))))
	rest := d.Long()
	if d.memory -= shared + len(rest) + len(last.origin.Host); !d.OK() || d.memory < 0 {
		d.Require(false)
		return f
	}
	last.uri = last.uri[:shared] + string(rest)
	f.URL = last.origin.URL(last.uri)
	parsed, err := weburl.Parse(f.URL.String())
	d.Require(err == nil && parsed == f.URL)
	f.ViaHost, f.ViaOrdinal, f.Depth, f.At = last.via, last.ordinal, last.depth, FromSeconds(last.at)
	f.Seed, f.Sitemap, f.Listed = flags&foundSeed != 0, flags&foundSitemap != 0, flags&foundListed != 0
	if flags&foundStripped != 0 {
		f.Stripped = d.text()
		d.Require(0 < len(f.Stripped) && len(f.Stripped) <= weburl.MaxLength)
	}
	if more&foundRedirects != 0 {
		f.Redirects = d.Byte()
	}
	if more&foundFrequency != 0 {
		f.Frequency = Frequency(d.Byte())
		d.Require(f.Frequency <= 7)
	}
	if more&foundPriority != 0 {
		f.Priority = int8(d.Byte())
	}
	if more&foundModified != 0 {
		f.Modified = FromSeconds(d.Uint32())
	}
	if more&foundMetadata != 0 {
		f.Metadata = d.Long()
		m, ok := decodeMetadata(f.Metadata)
		d.Require(ok && len(m) > 0)
	}
	if more&foundOutcome != 0 {
		o := d.outcome()
		f.Outcome = &o
	}
	if more&foundFrom != 0 {
		copy(f.From.ID[:], d.Bytes(len(f.From.ID)))
		f.From.Outside = d.Byte()
		d.Require(f.From != SeedRef{})
	}
	return f
}

// origin reads an origin, which is not the zero one.
func (d *recordDecoder) origin() weburl.Origin {
	text := d.text()
	if !d.OK() {
		return weburl.Origin{}
	}
	o, err := weburl.ParseOrigin(text)
	d.Require(err == nil && o.String() == text)
	return o
}

func (d *recordDecoder) done() (all []Done) {
	host := NoHost
	for d.more() {
		flags := d.Byte()
		d.Require(flags < 1<<numDoneFlags)
		if flags&doneHost != 0 {
			host = d.host(host)
		}
		o := Done{Host: host, Ordinal: d.uint32()}
		if flags&doneOrigin != 0 {
			o.Origin = d.Byte()
		}
		if flags&donePriority != 0 {
			o.Priority = int8(d.Byte())
		}
		if flags&doneWhen != 0 {
			o.When = States(d.Byte())
		}
		o.Outcome = d.outcome()
		all = append(all, o)
	}
	return all
}

func (d *recordDecoder) hosts() (all []HostUpdate) {
	host := NoHost
	for d.more() {
		flags := d.Byte()
		d.Require(flags < 1<<numUpdateFlags)
		host = d.host(host)
		u := HostUpdate{Host: host}
		for n, text := range []*[]byte{&u.Politeness, &u.Site, &u.Wall} {
			if flags&(1<<n) != 0 {
				*text = d.Long()
			}
		}
		if flags&updateRequests != 0 {
			u.Requests = d.uint32()
		}
		if flags&updateBytes != 0 {
			u.Bytes = d.Uvarint()
		}
		if flags&updateCursors != 0 {
			for n := d.UvarintMax(uint64(d.Len())); n > 0 && d.item(); n-- {
				u.Cursors = append(u.Cursors, Cursor{d.Byte(), d.uint32()})
			}
		}
		all = append(all, u)
	}
	return all
}

// policies reads robots records. The origin of one may be the zero origin.
func (d *recordDecoder) policies() (all []Policy) {
	for d.more() {
		text := d.text()
		p := Policy{Record: d.Long()}
		if text != "" {
			o, err := weburl.ParseOrigin(text)
			d.Require(err == nil && o.String() == text)
			p.Origin = o
		}
		all = append(all, p)
	}
	return all
}

func (d *recordDecoder) payloads() (all []Payload) {
	host := NoHost
	for d.more() {
		flags := d.Byte()
		d.Require(flags <= payloadDigest)
		host = d.host(host)
		p := Payload{Host: host}
		if flags&payloadDigest != 0 {
			p.Digest = d.Uint64()
		}
		copy(p.SHA256[:], d.Bytes(len(p.SHA256)))
		if flags&payloadDigest == 0 {
			p.Digest = binary.BigEndian.Uint64(p.SHA256[:])
		}
		p.Ordinal, p.At = d.uint32(), FromSeconds(d.Uint32())
		all = append(all, p)
	}
	return all
}

// marks reads marks with names in rising order, all of them local or none.
func (d *recordDecoder) marks(local bool) map[string][]byte {
	all := make(map[string][]byte)
	for last := ""; d.more(); {
		name := d.text()
		d.Require(name > last && isLocal(name) == local)
		switch d.Byte() {
		case 0:
			all[name] = nil
		case 1:
			all[name] = append([]byte{}, d.Long()...)
		default:
			d.Require(false)
		}
		last = name
	}
	return all
}

func (d *recordDecoder) notices() (all []notice) {
	call := uint64(0)
	for d.more() {
		n := notice{call: call + d.UvarintMax(maxRecordItems)}
		d.Require(len(all) == 0 || n.call > call)
		n.due = d.Uint32()
		copy(n.history[:], d.Bytes(8))
		all, call = append(all, n), n.call
	}
	return all
}
