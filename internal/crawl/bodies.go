package crawl

import (
	"sync"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/storage"
)

// bodies are those whose answers wait for a commit or are with the committer: the store does not
// know of them yet, and the next answer of the host may have the same. An answer that points to one
// of them is added to the same job or a later one, so it is never committed without it. The
// dispatcher adds and removes; workers look.
type bodies struct{ originals sync.Map } // bodyKey to *archive.Original

type bodyKey struct {
	host   storage.HostID
	digest uint64
}

// add takes note of the body that a result brings.
func (b *bodies) add(res *result) {
	if p := res.payload; p != nil {
		b.originals.Store(bodyKey{p.Host, p.Digest},
			&archive.Original{URL: res.lease.URL.String(), At: p.At, Payload: p.SHA256})
	}
}

// find returns the answer with a body; nil where there is none.
func (b *bodies) find(host storage.HostID, digest uint64) *archive.Original {
	if o, ok := b.originals.Load(bodyKey{host, digest}); ok {
		return o.(*archive.Original)
	}
	return nil
}

// committed forgets bodies that the store knows of from now on.
func (b *bodies) committed(payloads []storage.Payload) {
	for i := range payloads {
		b.originals.Delete(bodyKey{payloads[i].Host, payloads[i].Digest})
	}
}
