//go:build !core

package records

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// decoder reads a record. Its bytes may be anything.
type decoder struct {
	wire.Decoder
	items  int // left
	memory int // bytes of URLs left
}

// Decode is part of [storage.Codec]. Slices are parts of b.
func (Codec) Decode(b []byte) (*storage.Change, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", storage.ErrRecord, len(b), MaxSize)
	}
	d := decoder{wire.NewDecoder(b), maxItems, maxMemory}
	switch version := d.Byte(); {
	case !d.OK() || version == 0:
		return nil, fmt.Errorf("%w: it has no version", storage.ErrRecord)
	case version > Version:
		return nil, fmt.Errorf("a record of the log: %w (its version is %d, this amble reads up to %d): "+
			"use a newer amble on this node", storage.ErrNewer, version, Version)
	}
	c := new(storage.Change)
	flags := d.Byte()
	d.Require(flags&^hasKey == 0)
	c.Number = d.Uvarint()
	d.Require(c.Number > 0)
	copy(c.Writer[:], d.Bytes(len(c.Writer)))
	if flags&hasKey != 0 {
		c.Key = d.Bytes(keySize)
	}
	for last := byte(0); d.OK() && d.Len() > 0; {
		section := d.Byte()
		body := d.Long()
		d.Require(section > last && section < numSections && len(body) > 0)
		if !d.OK() {
			break
		}
		s := decoder{wire.NewDecoder(body), d.items, d.memory}
		s.section(section, c)
		if err := s.End(); err != nil {
			return nil, fmt.Errorf("%w: section %d: %w", storage.ErrRecord, section, err)
		}
		last, d.items, d.memory = section, s.items, s.memory
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrRecord, err)
	}
	return c, nil
}

// more reports whether another item follows, and counts it.
func (d *decoder) more() bool {
	if d.Len() == 0 {
		return false
	}
	return d.item()
}

func (d *decoder) item() bool {
	d.items--
	d.Require(d.items >= 0)
	return d.OK()
}

func (d *decoder) section(section byte, c *storage.Change) {
	b := &c.Batch
	switch section {
	case sectionLimits:
		c.Limits = storage.Limits{HostURLs: d.uint32(), Queries: d.uint32(), SameDigest: d.uint32()}
		d.Require(c.Limits != (storage.Limits{}))
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
			b.Seeds = append(b.Seeds, storage.SeedRow{URL: d.text(), Value: []byte{}})
		}
	case sectionSeeds:
		for d.more() {
			s := storage.SeedRow{URL: d.text(), Value: d.Long()}
			if len(s.Value) == 0 {
				s.Value = nil
			}
			b.Seeds = append(b.Seeds, s)
		}
	case sectionRefused:
		for d.more() {
			b.Refused = append(b.Refused,
				storage.Refused{Reason: storage.Trap(d.Byte()), Host: d.text(), URL: d.url()})
		}
	case sectionPayloads:
		b.Payloads = d.payloads()
	case sectionPurges:
		for d.more() {
			p := storage.Purge{Host: storage.HostID(d.uint32()), Below: d.uint32(), From: d.Uvarint(), To: d.Uvarint()}
			b.Purges = append(b.Purges, p)
		}
	case sectionMarks:
		b.Marks = d.marks()
	case sectionLocal:
		c.Local = d.marks()
	case sectionNotices:
		c.Notices = d.notices()
	}
}

func (d *decoder) uint32() uint32 { return uint32(d.UvarintMax(math.MaxUint32)) }

func (d *decoder) text() string { return string(d.Long()) }

// host reads a host id behind another.
func (d *decoder) host(before storage.HostID) storage.HostID {
	id := int64(before) + d.Varint()
	d.Require(0 <= id && id <= math.MaxUint32)
	return storage.HostID(id)
}

// url reads the text of a URL. No text is the zero URL.
func (d *decoder) url() weburl.URL {
	text := d.text()
	if text == "" {
		return weburl.URL{}
	}
	u, err := weburl.Parse(text)
	d.Require(err == nil && u.String() == text)
	return u
}

func (d *decoder) outcome() (o storage.Outcome) {
	o, rest, ok := storage.DecodeOutcome(d.Long())
	d.Require(ok && len(rest) == 0)
	return o
}

func (d *decoder) found() (all []storage.Found) {
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

func (d *decoder) discovery(last *foundContext) (f storage.Found) {
	flags, more := d.Byte(), byte(0)
	d.Require(flags < 1<<numFoundFlags)
	if flags&foundMore != 0 {
		more = d.Byte()
		d.Require(0 < more)
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
	f.ViaHost, f.ViaOrdinal, f.Depth, f.At = last.via, last.ordinal, last.depth, storage.FromSeconds(last.at)
	f.Seed, f.Sitemap, f.Listed = flags&foundSeed != 0, flags&foundSitemap != 0, flags&foundListed != 0
	if flags&foundStripped != 0 {
		f.Stripped = d.text()
		d.Require(0 < len(f.Stripped) && len(f.Stripped) <= weburl.MaxLength)
	}
	if more&foundRedirects != 0 {
		f.Redirects = d.Byte()
	}
	if more&foundFrequency != 0 {
		f.Frequency = storage.Frequency(d.Byte())
		d.Require(f.Frequency <= 7)
	}
	if more&foundPriority != 0 {
		f.Priority = int8(d.Byte())
	}
	if more&foundModified != 0 {
		f.Modified = storage.FromSeconds(d.Uint32())
	}
	if more&foundMetadata != 0 {
		f.Metadata = d.Long()
		m, ok := storage.DecodeMetadata(f.Metadata)
		d.Require(ok && len(m) > 0)
	}
	if more&foundOutcome != 0 {
		o := d.outcome()
		f.Outcome = &o
	}
	if more&foundFrom != 0 {
		copy(f.From.ID[:], d.Bytes(len(f.From.ID)))
		f.From.Outside = d.Byte()
		d.Require(f.From != storage.SeedRef{})
	}
	if more&foundRoom != 0 {
		f.Room = d.Byte()
		d.Require(f.Room > 0)
	}
	return f
}

// origin reads an origin, which is not the zero one.
func (d *decoder) origin() weburl.Origin {
	text := d.text()
	if !d.OK() {
		return weburl.Origin{}
	}
	o, err := weburl.ParseOrigin(text)
	d.Require(err == nil && o.String() == text)
	return o
}

func (d *decoder) done() (all []storage.Done) {
	host := storage.NoHost
	for d.more() {
		flags := d.Byte()
		d.Require(flags < 1<<numDoneFlags)
		if flags&doneHost != 0 {
			host = d.host(host)
		}
		o := storage.Done{Host: host, Ordinal: d.uint32()}
		if flags&doneOrigin != 0 {
			o.Origin = d.Byte()
		}
		if flags&donePriority != 0 {
			o.Priority = int8(d.Byte())
		}
		if flags&doneWhen != 0 {
			o.When = storage.States(d.Byte())
		}
		o.Outcome = d.outcome()
		all = append(all, o)
	}
	return all
}

func (d *decoder) hosts() (all []storage.HostUpdate) {
	host := storage.NoHost
	for d.more() {
		flags := d.Byte()
		d.Require(flags < 1<<numUpdateFlags)
		host = d.host(host)
		u := storage.HostUpdate{Host: host}
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
				u.Cursors = append(u.Cursors, storage.Cursor{Origin: d.Byte(), Next: d.uint32()})
			}
		}
		all = append(all, u)
	}
	return all
}

// policies reads robots records. The origin of one may be the zero origin.
func (d *decoder) policies() (all []storage.Policy) {
	for d.more() {
		text := d.text()
		p := storage.Policy{Record: d.Long()}
		if text != "" {
			o, err := weburl.ParseOrigin(text)
			d.Require(err == nil && o.String() == text)
			p.Origin = o
		}
		all = append(all, p)
	}
	return all
}

func (d *decoder) payloads() (all []storage.Payload) {
	host := storage.NoHost
	for d.more() {
		flags := d.Byte()
		d.Require(flags <= payloadDigest)
		host = d.host(host)
		p := storage.Payload{Host: host}
		if flags&payloadDigest != 0 {
			p.Digest = d.Uint64()
		}
		copy(p.SHA256[:], d.Bytes(len(p.SHA256)))
		if flags&payloadDigest == 0 {
			p.Digest = binary.BigEndian.Uint64(p.SHA256[:])
		}
		p.Ordinal, p.At = d.uint32(), storage.FromSeconds(d.Uint32())
		all = append(all, p)
	}
	return all
}

// marks reads marks with names in rising order.
func (d *decoder) marks() map[string][]byte {
	all := make(map[string][]byte)
	for last := ""; d.more(); {
		name := d.text()
		d.Require(name > last)
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

func (d *decoder) notices() (all []storage.Notice) {
	call := uint64(0)
	for d.more() {
		n := storage.Notice{Call: call + d.UvarintMax(maxItems)}
		d.Require(len(all) == 0 || n.Call > call)
		n.Due = d.Uint32()
		copy(n.History[:], d.Bytes(8))
		all, call = append(all, n), n.Call
	}
	return all
}
