package storage

import (
	"fmt"
	"slices"

	"github.com/amble-crawler/amble/internal/wire"
)

// RecordVersion is the newest version of the records that this code writes. It refuses newer ones. A record that has
// nothing of a version is written as one of the version before, so that older programs read it.
const RecordVersion = 2

// Bounds of a record. One beyond them is neither written nor read.
const (
	MaxRecord       = 256 << 20 // bytes
	maxRecordItems  = 2 << 20   // of all kinds together
	maxRecordMemory = 1 << 30   // bytes of URLs when they are decoded: most are shorter in the record
)

// record is what a log holds of one commit: the batch, and all that decides what becomes of it
// besides the database. FORMAT.md describes its bytes.
type record struct {
	number  uint64   // of the batch in its log, from 1
	writer  writerID // the data directory that wrote it
	key     []byte   // the secret of the fingerprints, in the first record only; nil: none
	limits  limits
	notices []notice
	batch   Batch
	local   map[string][]byte // marks that count in the data directory of the writer only
}

// writerID identifies a data directory among those that hold views of one log.
type writerID [8]byte

// notice is what Options.Notice said of a listed URL.
type notice struct {
	call    uint64 // the number of the call in its commit, from 0
	due     uint32 // Unix seconds; 0: none
	history [8]byte
}

// The sections of a record, in their order.
const (
	sectionLimits = 1 + iota
	sectionFound
	sectionDone
	sectionHosts
	sectionPolicies
	sectionRobotsHistory
	sectionEnsure
	sectionPlainSeeds
	sectionRefused
	sectionPayloads
	sectionPurges
	sectionMarks
	sectionLocal
	sectionNotices
	sectionSeeds // from version 2 on, as foundFrom
	numSections
)

// recordHasKey is a flag of a record.
const recordHasKey = 1

// Flags of a discovery in a record.
const (
	foundOrigin   = 1 << iota // another origin than that of the one before
	foundPage                 // found on another page, or at another time, than the one before
	foundSeed                 //
	foundSitemap              //
	foundListed               //
	foundStripped             //
	foundMore                 // a second byte of flags follows
	numFoundFlags = iota
)

// Flags of the second byte.
const (
	foundRedirects = 1 << iota
	foundFrequency
	foundPriority
	foundModified
	foundMetadata
	foundOutcome
	foundFrom
	numFoundMore = iota
)

// Flags of an outcome in a record.
const (
	doneHost   = 1 << iota // another host than that of the one before
	doneOrigin             // not origin 0
	donePriority
	doneWhen
	numDoneFlags = iota
)

// Flags of a host's update in a record.
const (
	updatePoliteness = 1 << iota
	updateSite
	updateWall
	updateRequests
	updateBytes
	updateCursors
	numUpdateFlags = iota
)

// payloadDigest says that the digest is not the start of the payload's SHA-256.
const payloadDigest = 1

// Names of marks of the engine that describe files of one data directory: the lengths of the output
// files, and the requests that the request log has to name as uncommitted.
const (
	MarkOutput      = "output"
	MarkUncommitted = "unsaid"
)

// isLocal reports whether a mark describes files of one data directory. Such marks mean nothing
// anywhere else.
func isLocal(mark string) bool {
	switch mark {
	case MarkLedger, MarkOutput, MarkUncommitted, markView:
		return true
	}
	return false
}

// HaveSeeds reports whether one of the discoveries says which seed it was reached from.
func HaveSeeds(all []Found) bool {
	return slices.ContainsFunc(all, func(f Found) bool { return f.From != SeedRef{} })
}

// Discovery is a discovery for another shard. Its page has no id there, so it has a text.
type Discovery struct {
	Found Found  // ViaHost and ViaOrdinal mean nothing
	Via   string // the URL of the page; empty: it was not found on a page
}

// AppendFound appends discoveries as a record has them. Fingerprints are left out, as are
// discoveries of hosts that no row can hold.
func AppendFound(b []byte, all []Found) ([]byte, error) {
	e := encoder{b: b, items: len(all)}
	e.found(all)
	if len(e.body) > MaxRecord || e.items > maxRecordItems {
		return nil, fmt.Errorf("%d discoveries of %d bytes are too many for one message", e.items, len(e.body))
	}
	return append(e.b, e.body...), nil
}

// DecodeFound is the inverse of AppendFound. The error is ErrRecord.
func DecodeFound(b []byte) ([]Found, error) {
	if len(b) > MaxRecord {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrRecord, len(b), MaxRecord)
	}
	d := recordDecoder{wire.NewDecoder(b), maxRecordItems, maxRecordMemory}
	all := d.found()
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return all, nil
}
