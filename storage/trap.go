package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Trap is why a URL leads into a trap: a part of a site that goes on for ever. The numbers are
// stored and therefore stable.
type Trap uint8

// The traps. TrapQueries to TrapHostURLs need the other URLs of the host, so the store finds them;
// the others are visible in the URL.
const (
	NoTrap          Trap = 0
	TrapDepth       Trap = 1  // too many path segments
	TrapRepetition  Trap = 2  // segments that repeat
	TrapParameters  Trap = 3  // too many query parameters
	TrapCalendar    Trap = 4  // a date that no page is about
	TrapGrowth      Trap = 5  // appends what the page before appended
	TrapQueries     Trap = 6  // one path with very many different queries
	TrapSession     Trap = 7  // differs from a known URL by a session id only
	TrapSameContent Trap = 8  // found on one of many pages with the same content
	TrapHostURLs    Trap = 9  // the host has the most URLs allowed
	TrapRefresh     Trap = 10 // the target of a refresh that leads on and on
	TrapHosts       Trap = 11 // on a new host of a registrable domain that has the most hosts allowed
	TrapExpensive   Trap = 12 // an expensive endpoint of a forge, a wiki or the like
	TrapMaze        Trap = 13 // in a branch of a host that goes on for ever
	numTraps             = 14
)

var trapNames = [numTraps]string{
	"none", "path depth", "repeated segments", "query parameters", "calendar", "growing URL",
	"queries of a path", "session id", "same content", "URLs of the host", "refresh",
	"hosts of the domain", "expensive", "maze",
}

// String returns the name that reports use.
func (t Trap) String() string {
	if int(t) < len(trapNames) {
		return trapNames[t]
	}
	return fmt.Sprintf("trap(%d)", uint8(t))
}

// Bounds of what is stored of refused URLs, for each host and reason.
const (
	trapSamples     = 3
	trapSampleBytes = 512 // of the text of one URL, which is cut there
)

// Refused is a URL that a worker found to lead into a trap.
type Refused struct {
	Host   string // the host that it counts for; an unknown one is ignored
	Reason Trap   // not NoTrap
	URL    weburl.URL
}

// TrapCount is what was refused of one host for one reason.
type TrapCount struct {
	Reason  Trap
	Count   uint64   // of refusals, also of the same URL
	Samples []string // the first URLs refused, at most 3, cut to 512 bytes
}

// Traps returns what was refused of a host, ordered by reason. It returns nothing for an unknown host.
func (s *rows) Traps(host HostID) (counts []TrapCount, err error) {
	err = s.db.View(func(tx *txn) error {
		b := tx.Bucket(bucketTrap)
		if b == nil { // the file is of an older version
			return nil
		}
		var ok bool
		if counts, ok = decodeTraps(b.Get(appendHostKey(nil, host))); !ok {
			return fmt.Errorf("host %d: %w: its traps cannot be read", host, ErrCorrupt)
		}
		return nil
	})
	return counts, err
}

func appendTraps(b []byte, counts []TrapCount) []byte {
	for _, c := range counts {
		b = append(b, byte(c.Reason))
		b = binary.AppendUvarint(b, c.Count)
		b = append(b, byte(len(c.Samples)))
		for _, text := range c.Samples {
			b = binary.AppendUvarint(b, uint64(len(text)))
			b = append(b, text...)
		}
	}
	return b
}

func decodeTraps(b []byte) (counts []TrapCount, ok bool) {
	d := wire.NewDecoder(b)
	for last := NoTrap; d.Len() > 0; {
		c := TrapCount{Reason: Trap(d.Byte()), Count: d.Uvarint()}
		samples := int(d.Byte())
		if !d.OK() || c.Reason <= last || c.Count == 0 || samples > trapSamples {
			return nil, false
		}
		for range samples {
			c.Samples = append(c.Samples, string(d.Bytes(int(d.UvarintMax(trapSampleBytes)))))
		}
		last = c.Reason
		counts = append(counts, c)
	}
	return counts, d.OK()
}

// countTrap counts one refusal among those of a host.
func countTrap(counts []TrapCount, reason Trap, text string) []TrapCount {
	i := 0
	for i < len(counts) && counts[i].Reason < reason {
		i++
	}
	if i == len(counts) || counts[i].Reason != reason {
		counts = append(counts, TrapCount{})
		copy(counts[i+1:], counts[i:])
		counts[i] = TrapCount{Reason: reason}
	}
	c := &counts[i]
	c.Count++
	text = text[:min(len(text), trapSampleBytes)]
	if len(c.Samples) == trapSamples {
		return counts
	}
	for _, known := range c.Samples {
		if known == text {
			return counts
		}
	}
	c.Samples = append(c.Samples, strings.Clone(text))
	return counts
}

// refusal is a refused URL of the host at hand.
type refusal struct {
	reason Trap
	url    weburl.URL
}

func (w *hostWork) refuse(reason Trap, u weburl.URL) {
	w.result.Trapped++
	if w.result.TrappedBy == nil {
		w.result.TrappedBy = make(map[Trap]int)
	}
	w.result.TrappedBy[reason]++
	w.refusals = append(w.refusals, refusal{reason, u})
}

// putTraps adds the refusals of this commit to the host's record.
func (w *hostWork) putTraps(host HostID) error {
	if len(w.refusals) == 0 {
		return nil
	}
	counts, ok := decodeTraps(w.trap.Get(appendHostKey(w.key[:0], host)))
	if !ok {
		return fmt.Errorf("%w: its traps cannot be read", ErrCorrupt)
	}
	for _, refused := range w.refusals {
		counts = countTrap(counts, refused.reason, refused.url.String())
	}
	w.refusals = w.refusals[:0]
	return w.trap.Put(appendHostKey(w.key[:0], host), appendTraps(nil, counts))
}

// trapped returns the trap that a new URL of a host leads into, or NoTrap; then it also counts the
// URL among the queries of its path. Only the limit of the host applies to seeds.
func (w *hostWork) trapped(r *hostRow, origin uint8, f *Found) Trap {
	limits := &w.effects.limits
	if limits.HostURLs > 0 && r.urls() >= limits.HostURLs {
		return TrapHostURLs
	}
	if !f.Seed && f.ViaHost == r.id && len(w.copies) > 0 && w.copies[f.ViaOrdinal] {
		return TrapSameContent
	}
	uri := f.URL.RequestURI()
	query := strings.IndexByte(uri, '?')
	if limits.Queries == 0 || query < 0 || f.Priority == PriorityRequisite {
		return 0
	}
	path := w.store.pathKey(&r.origins[origin], uri[:query])
	if !f.Seed && r.queries.count(path) >= limits.Queries {
		return TrapQueries
	}
	r.queries = r.queries.add(path, queryKeys)
	return 0
}

// pathKey returns the key of a path in the tally of queries. It is keyed with the secret of the
// store, so that no site can make two paths count as one.
func (s *rows) pathKey(o *originRow, path string) uint64 {
	var buf [keySize + 4 + weburl.MaxLength]byte
	b := append(append(buf[:0], s.key[:]...), 'q', 'p')
	if o.secure {
		b[keySize+1] = 's'
	}
	b = binary.BigEndian.AppendUint16(b, o.port)
	sum := sha256.Sum256(append(b, path...))
	return binary.BigEndian.Uint64(sum[:])
}

// content counts the digest of a page that was fetched for the first time. If enough other pages
// had the same digest, this commit refuses the links of the page.
func (w *hostWork) content(r *hostRow, d *Done, before State) {
	limit := w.effects.limits.SameDigest
	if limit == 0 || d.Outcome.State != Fetched || d.Outcome.Digest == 0 || before != Queued {
		return
	}
	if r.digests.count(d.Outcome.Digest) >= limit {
		w.copies[d.Ordinal] = true
	}
	r.digests = r.digests.add(d.Outcome.Digest, digestKeys)
}
