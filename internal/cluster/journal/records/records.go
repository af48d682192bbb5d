//go:build !core

// Package records is the form that the commits of a shard have in its log in a cluster, and URLs on their way to other
// shards.
package records

import (
	"fmt"
	"slices"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/storage"
)

// Codec is the [storage.Codec] of the logs of a cluster: its records. storage/FORMAT.md describes their bytes.
type Codec struct{}

// Version is the newest version of the records that this code writes. It refuses newer ones. A record that has
// nothing of a version is written as one of the version before, so that older programs read it.
const Version = 2

// Bounds of a record. One beyond them is neither written nor read.
const (
	MaxSize   = 256 << 20 // bytes
	maxItems  = 2 << 20   // of all kinds together
	maxMemory = 1 << 30   // bytes of URLs when they are decoded: most are shorter in the record
)

// keySize is the length of the secret of the fingerprints.
const keySize = 16

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

// hasKey is a flag of a record: it has the secret of the fingerprints.
const hasKey = 1

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
	foundRoom
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

// AreNewer reports whether one of the discoveries says which seed it was reached from, or is a requisite that may
// lead to others.
func AreNewer(all []storage.Found) bool {
	return slices.ContainsFunc(all, func(f storage.Found) bool { return f.From != storage.SeedRef{} || f.Room > 0 })
}

// AppendFound appends discoveries as a record has them. Fingerprints are left out, as are
// discoveries of hosts that no row can hold.
func AppendFound(b []byte, all []storage.Found) ([]byte, error) {
	e := encoder{b: b, items: len(all)}
	e.found(all)
	if len(e.body) > MaxSize || e.items > maxItems {
		return nil, fmt.Errorf("%d discoveries of %d bytes are too many for one message", e.items, len(e.body))
	}
	return append(e.b, e.body...), nil
}

// DecodeFound is the inverse of AppendFound. The error is ErrRecord.
func DecodeFound(b []byte) ([]storage.Found, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", storage.ErrRecord, len(b), MaxSize)
	}
	d := decoder{wire.NewDecoder(b), maxItems, maxMemory}
	all := d.found()
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrRecord, err)
	}
	return all, nil
}
