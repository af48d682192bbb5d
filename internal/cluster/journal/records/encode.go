//go:build !core

package records

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// encoder appends a record. Each section is made in body, which knows its length then.
type encoder struct {
	b, body []byte
	items   int
	newer   bool // it has what records of version 1 do not have
}

// Encode is part of [storage.Codec].
func (Codec) Encode(c *storage.Change) ([]byte, error) {
	var flags byte
	if c.Key != nil {
		flags |= hasKey
	}
	b := []byte{1, flags}
	b = binary.AppendUvarint(b, c.Number)
	b = append(append(b, c.Writer[:]...), c.Key...)
	e := encoder{b: b}
	if c.Limits != (storage.Limits{}) {
		e.uvarint(uint64(c.Limits.HostURLs))
		e.uvarint(uint64(c.Limits.Queries))
		e.uvarint(uint64(c.Limits.SameDigest))
		e.end(sectionLimits)
	}
	e.batch(&c.Batch)
	e.marks(c.Batch.Marks)
	e.end(sectionMarks)
	e.marks(c.Local)
	e.end(sectionLocal)
	call := uint64(0)
	for _, n := range c.Notices {
		e.items++
		e.uvarint(n.Call - call)
		e.body = append(binary.BigEndian.AppendUint32(e.body, n.Due), n.History[:]...)
		call = n.Call
	}
	e.end(sectionNotices)
	e.seeds(c.Batch.Seeds)
	e.end(sectionSeeds)
	if e.newer {
		e.b[0] = Version
	}
	if size := len(e.b); size > MaxSize || e.items > maxItems {
		return nil, fmt.Errorf("a batch of %d items takes %d bytes in the log: %d items and %d bytes are allowed",
			e.items, size, maxItems, MaxSize)
	}
	return e.b, nil
}

func (e *encoder) uvarint(v uint64) { e.body = binary.AppendUvarint(e.body, v) }

func (e *encoder) long(s string) {
	e.uvarint(uint64(len(s)))
	e.body = append(e.body, s...)
}

func (e *encoder) longBytes(b []byte) {
	e.uvarint(uint64(len(b)))
	e.body = append(e.body, b...)
}

// host appends a host id as the difference to the one before.
func (e *encoder) host(id, before storage.HostID) {
	e.body = binary.AppendVarint(e.body, int64(id)-int64(before))
}

// outcome appends an outcome behind its length, which has one byte unless the texts are long.
func (e *encoder) outcome(o *storage.Outcome) {
	at := len(e.body)
	e.body = storage.AppendOutcome(append(e.body, 0), o)
	n := len(e.body) - at - 1
	if n < 0x80 {
		e.body[at] = byte(n)
		return
	}
	body := slices.Clone(e.body[at+1:])
	e.body = e.body[:at]
	e.longBytes(body)
}

// end ends a section. One without contents does not appear.
func (e *encoder) end(section byte) {
	if len(e.body) == 0 {
		return
	}
	e.b = binary.AppendUvarint(append(e.b, section), uint64(len(e.body)))
	e.b = append(e.b, e.body...)
	e.body = e.body[:0]
}

// batch appends all of a batch but its marks.
func (e *encoder) batch(b *storage.Batch) {
	e.items += len(b.Found) + len(b.Done) + len(b.Hosts) + len(b.Policies) + len(b.RobotsHistory) +
		len(b.Ensure) + len(b.Seeds) + len(b.Refused) + len(b.Payloads) + len(b.Purges)
	e.found(b.Found)
	e.end(sectionFound)
	e.done(b.Done)
	e.end(sectionDone)
	e.hosts(b.Hosts)
	e.end(sectionHosts)
	e.policies(b.Policies)
	e.end(sectionPolicies)
	e.policies(b.RobotsHistory)
	e.end(sectionRobotsHistory)
	for _, name := range b.Ensure {
		e.long(name)
	}
	e.end(sectionEnsure)
	for _, seed := range b.Seeds {
		if seed.Value != nil && len(seed.Value) == 0 {
			e.long(seed.URL)
		}
	}
	e.end(sectionPlainSeeds)
	for i := range b.Refused {
		r := &b.Refused[i]
		e.body = append(e.body, byte(r.Reason))
		e.long(r.Host)
		e.long(r.URL.String())
	}
	e.end(sectionRefused)
	e.payloads(b.Payloads)
	e.end(sectionPayloads)
	for _, p := range b.Purges {
		for _, v := range []uint64{uint64(p.Host), uint64(p.Below), p.From, p.To} {
			e.uvarint(v)
		}
	}
	e.end(sectionPurges)
}

// seeds appends the seeds that are more than a URL, and those that are removed.
func (e *encoder) seeds(all []storage.SeedRow) {
	for _, s := range all {
		if s.Value != nil && len(s.Value) == 0 {
			continue
		}
		e.newer = true
		e.long(s.URL)
		e.longBytes(s.Value)
	}
}

// foundContext is what a discovery in a record shares with the one before.
type foundContext struct {
	origin  weburl.Origin
	uri     string
	via     storage.HostID
	ordinal uint32
	depth   uint16
	at      uint32
}

// found appends discoveries. Those with a host that no row can hold, which change nothing, are left
// out. So are the fingerprints, which follow from the URLs.
func (e *encoder) found(all []storage.Found) {
	var last foundContext
	for i := range all {
		if f := &all[i]; storage.IsHostName(f.URL.Host()) {
			e.discovery(f, &last)
		}
	}
}

func (e *encoder) discovery(f *storage.Found, last *foundContext) {
	now := foundContext{f.URL.Origin(), f.URL.RequestURI(), f.ViaHost, f.ViaOrdinal, f.Depth, storage.Seconds(f.At)}
	var flags byte
	set := func(to *byte, flag byte, is bool) {
		if is {
			*to |= flag
		}
	}
	page := now.via != last.via || now.ordinal != last.ordinal || now.depth != last.depth || now.at != last.at
	set(&flags, foundOrigin, now.origin != last.origin)
	set(&flags, foundPage, page)
	set(&flags, foundSeed, f.Seed)
	set(&flags, foundSitemap, f.Sitemap)
	set(&flags, foundListed, f.Listed)
	set(&flags, foundStripped, f.Stripped != "")
	var more byte
	set(&more, foundRedirects, f.Redirects != 0)
	set(&more, foundFrequency, f.Frequency != 0)
	set(&more, foundPriority, f.Priority != 0)
	set(&more, foundModified, !f.Modified.IsZero())
	set(&more, foundMetadata, len(f.Metadata) > 0)
	set(&more, foundOutcome, f.Outcome != nil)
	set(&more, foundFrom, f.From != storage.SeedRef{})
	set(&more, foundRoom, f.Room != 0)
	set(&flags, foundMore, more != 0)
	e.body = append(e.body, flags)
	if more != 0 {
		e.body = append(e.body, more)
	}
	if flags&foundOrigin != 0 {
		e.long(now.origin.String())
	}
	if flags&foundPage != 0 {
		e.host(now.via, last.via)
		e.uvarint(uint64(now.ordinal))
		e.uvarint(uint64(now.depth))
		e.body = binary.AppendVarint(e.body, int64(now.at)-int64(last.at))
	}
	shared := sharedPrefix(last.uri, now.uri)
	e.uvarint(uint64(shared))
	e.long(now.uri[shared:])
	if flags&foundStripped != 0 {
		e.long(f.Stripped)
	}
	if more&foundRedirects != 0 {
		e.body = append(e.body, f.Redirects)
	}
	if more&foundFrequency != 0 {
		e.body = append(e.body, byte(f.Frequency))
	}
	if more&foundPriority != 0 {
		e.body = append(e.body, byte(f.Priority))
	}
	if more&foundModified != 0 {
		e.body = binary.BigEndian.AppendUint32(e.body, storage.Seconds(f.Modified))
	}
	if more&foundMetadata != 0 {
		e.longBytes(f.Metadata)
	}
	if more&foundOutcome != 0 {
		e.outcome(f.Outcome)
	}
	if more&foundFrom != 0 {
		e.newer = true
		e.body = append(append(e.body, f.From.ID[:]...), f.From.Outside)
	}
	if more&foundRoom != 0 {
		e.newer = true
		e.body = append(e.body, f.Room)
	}
	*last = now
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func (e *encoder) done(all []storage.Done) {
	host := storage.NoHost
	for i := range all {
		d := &all[i]
		var flags byte
		if d.Host != host {
			flags |= doneHost
		}
		if d.Origin != 0 {
			flags |= doneOrigin
		}
		if d.Priority != 0 {
			flags |= donePriority
		}
		if d.When != 0 {
			flags |= doneWhen
		}
		e.body = append(e.body, flags)
		if flags&doneHost != 0 {
			e.host(d.Host, host)
		}
		e.uvarint(uint64(d.Ordinal))
		if flags&doneOrigin != 0 {
			e.body = append(e.body, d.Origin)
		}
		if flags&donePriority != 0 {
			e.body = append(e.body, byte(d.Priority))
		}
		if flags&doneWhen != 0 {
			e.body = append(e.body, byte(d.When))
		}
		e.outcome(&d.Outcome)
		host = d.Host
	}
}

func (e *encoder) hosts(all []storage.HostUpdate) {
	host := storage.NoHost
	for i := range all {
		u := &all[i]
		var flags byte
		for n, is := range []bool{u.Politeness != nil, u.Site != nil, u.Wall != nil, u.Requests != 0, u.Bytes != 0,
			len(u.Cursors) > 0} {
			if is {
				flags |= 1 << n
			}
		}
		e.body = append(e.body, flags)
		e.host(u.Host, host)
		for n, text := range [][]byte{u.Politeness, u.Site, u.Wall} {
			if flags&(1<<n) != 0 {
				e.longBytes(text)
			}
		}
		if flags&updateRequests != 0 {
			e.uvarint(uint64(u.Requests))
		}
		if flags&updateBytes != 0 {
			e.uvarint(u.Bytes)
		}
		if flags&updateCursors != 0 {
			e.uvarint(uint64(len(u.Cursors)))
			e.items += len(u.Cursors)
			for _, c := range u.Cursors {
				e.body = append(e.body, c.Origin)
				e.uvarint(uint64(c.Next))
			}
		}
		host = u.Host
	}
}

func (e *encoder) policies(all []storage.Policy) {
	for i := range all {
		e.long(all[i].Origin.String())
		e.longBytes(all[i].Record)
	}
}

func (e *encoder) payloads(all []storage.Payload) {
	host := storage.NoHost
	for i := range all {
		p := &all[i]
		var flags byte
		if p.Digest != binary.BigEndian.Uint64(p.SHA256[:]) {
			flags |= payloadDigest
		}
		e.body = append(e.body, flags)
		e.host(p.Host, host)
		if flags&payloadDigest != 0 {
			e.body = binary.BigEndian.AppendUint64(e.body, p.Digest)
		}
		e.body = append(e.body, p.SHA256[:]...)
		e.uvarint(uint64(p.Ordinal))
		e.body = binary.BigEndian.AppendUint32(e.body, storage.Seconds(p.At))
		host = p.Host
	}
}

// marks appends marks in the order of their names.
func (e *encoder) marks(all map[string][]byte) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.items++
		e.long(name)
		if all[name] == nil {
			e.body = append(e.body, 0)
			continue
		}
		e.body = append(e.body, 1)
		e.longBytes(all[name])
	}
}
