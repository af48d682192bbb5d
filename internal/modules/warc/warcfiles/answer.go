//go:build !core

package warcfiles

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// answer is the record of a response that is being made.
type answer struct {
	x       *archive.Exchange
	id      string
	head    []byte         // of the HTTP response, as it is stored
	body    *spool.Content // what follows head, from byte first on
	first   int64
	own     bool // body belongs to the answer, not to the exchange
	kind    string
	profile string        // of a revisit record
	index   string        // of the collection that has the original; empty: this one
	block   digest.Digest // zero if the payload's digest is enough: the gzip member has a checksum of everything
	payload digest.Digest
}

// newAnswer decides what the record will contain.
func (e *encoder) newAnswer(unchunk *bufio.Reader, x *archive.Exchange) (*answer, error) {
	start, err := x.Response.Load(nil, maxHTTPHead)
	if err != nil {
		return nil, err
	}
	n, whole := warc.HTTPHead(start)
	if !whole {
		n = len(start)
	}
	a := &answer{x: x, id: warc.NewID(), kind: warc.TypeResponse, head: start[:n], body: x.Response, first: int64(n)}
	if whole {
		if err := e.asStored(unchunk, a); err != nil {
			return nil, err
		}
	}
	if err := a.describe(whole); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// asStored removes the chunks from the body, so that equal bodies are equal however they came, and
// sets the length of the stored body in the header.
func (e *encoder) asStored(unchunk *bufio.Reader, a *answer) error {
	if a.x.Chunked {
		body := e.pool.NewWriter(a.size())
		defer body.Discard()
		unchunk.Reset(a.bodyReader())
		_, err := body.ReadFrom(httputil.NewChunkedReader(unchunk))
		var failed *spool.Error
		if errors.As(err, &failed) {
			return err
		}
		a.body, a.first, a.own = body.Content(), 0, true // of chunks that end too early, what is there
	}
	if a.x.Chunked || a.x.Truncated != "" {
		a.head = warc.AppendStoredHead(nil, a.head, a.size())
	}
	return nil
}

// describe computes the digests, and finds out whether the response repeats a stored one.
func (a *answer) describe(whole bool) (err error) {
	if !whole {
		if a.block, err = a.blockDigest(); err != nil {
			return err
		}
	}
	if a.payload = a.x.Payload; a.payload == (digest.Digest{}) {
		if a.payload, err = digestFrom(a.body, a.first); err != nil {
			return err
		}
	}
	original := a.x.Original
	switch {
	case warc.Status(a.head) == http.StatusNotModified:
		a.kind, a.profile = warc.TypeRevisit, warc.ProfileNotModified
		if a.block, err = a.blockDigest(); err != nil {
			return err
		}
		if original != nil {
			a.payload = original.Payload
		}
	case original != nil && original.Payload == a.payload && !a.empty() && a.x.Truncated == "":
		a.kind, a.profile = warc.TypeRevisit, warc.ProfileIdenticalPayload
		a.block = digest.Of(a.head)
	}
	return nil
}

// findElsewhere makes a revisit record of a response whose body another collection has.
func (e *encoder) findElsewhere(a *answer) {
	if e.others == nil || !a.isNew() || warc.Status(a.head) != http.StatusOK {
		return
	}
	if original := e.others.find(a); original != nil {
		x := *a.x
		x.Original = original
		a.x, a.index = &x, e.others.source
		a.kind, a.profile, a.block = warc.TypeRevisit, warc.ProfileIdenticalPayload, digest.Of(a.head)
	}
}

// close frees what the answer holds besides the exchange.
func (a *answer) close() {
	if a.own {
		_ = a.body.Close() // nothing can be done about a file that cannot be closed
		a.own = false
	}
}

// size returns the length of the body.
func (a *answer) size() int64 { return a.body.Size() - a.first }

func (a *answer) bodyReader() io.Reader {
	return io.NewSectionReader(a.body.NewReader(), a.first, a.size())
}

func (a *answer) empty() bool { return a.size() == 0 }

// isNew reports whether the payload is stored for the first time, and whole.
func (a *answer) isNew() bool {
	return a.kind == warc.TypeResponse && !a.empty() && a.x.Truncated == ""
}

// addFields adds the fields that only this record has.
func (a *answer) addFields(h *warc.Header) {
	h.Add(warc.FieldContentType, warc.MediaResponse)
	if a.block != (digest.Digest{}) {
		h.Add(warc.FieldBlockDigest, a.block.String())
	}
	original := a.x.Original
	if a.profile != warc.ProfileNotModified || original != nil {
		h.Add(warc.FieldPayloadDigest, a.payload.String())
	}
	switch {
	case a.profile == warc.ProfileIdenticalPayload:
		h.Add(warc.FieldTruncated, string(archive.TooLong)) // also of a revisit record: section 6.7.2
	case a.x.Truncated != "":
		h.Add(warc.FieldTruncated, string(a.x.Truncated))
	}
	h.Add(warc.FieldProfile, a.profile)
	if a.profile != "" && original != nil {
		h.Add(warc.FieldRefersToTargetURI, original.URL)
		h.Add(warc.FieldRefersToDate, warc.FormatDate(original.At))
		h.Add(warc.FieldRefersToIndex, a.index)
	}
}

// blockDigest returns the digest of header and body.
func (a *answer) blockDigest() (digest.Digest, error) {
	h := digest.NewHash()
	h.Write(a.head)
	_, err := io.Copy(h, a.bodyReader())
	return digest.Sum(h), err
}

// digestFrom returns the digest of a content from a byte on.
func digestFrom(c *spool.Content, first int64) (digest.Digest, error) {
	if b, ok := c.Bytes(); ok {
		return digest.Of(b[first:]), nil
	}
	rest := digest.NewHash()
	_, err := io.Copy(rest, io.NewSectionReader(c.NewReader(), first, c.Size()-first))
	return digest.Sum(rest), err
}
