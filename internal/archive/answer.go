package archive

import (
	"io"
	"net/http"

	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
)

// answer is the record of an answer in the making.
type answer struct {
	x       *Exchange
	id      string
	head    []byte // of the HTTP answer
	kind    string
	profile string      // of a revisit
	block   warc.Digest // zero where that of the payload is enough: the gzip member has a checksum of all
	payload warc.Digest
}

// newAnswer decides what the record will be.
func newAnswer(x *Exchange) (*answer, error) {
	start, err := x.Response.Load(nil, maxHTTPHead)
	if err != nil {
		return nil, err
	}
	n, whole := warc.HTTPHead(start)
	a := &answer{x: x, id: warc.NewID(), kind: warc.TypeResponse}
	if !whole {
		n = len(start)
		if a.block, err = digestFrom(x.Response, 0); err != nil {
			return nil, err
		}
	}
	a.head = start[:n]
	if a.payload = x.Payload; a.payload == (warc.Digest{}) {
		if a.payload, err = digestFrom(x.Response, int64(n)); err != nil {
			return nil, err
		}
	}
	original := x.Original
	switch {
	case warc.Status(a.head) == http.StatusNotModified:
		a.kind, a.profile = warc.TypeRevisit, warc.ProfileNotModified
		if a.block, err = digestFrom(x.Response, 0); err != nil {
			return nil, err
		}
		if original != nil {
			a.payload = original.Payload
		}
	case original != nil && original.Payload == a.payload && !a.empty() && !x.Truncated:
		a.kind, a.profile = warc.TypeRevisit, warc.ProfileIdenticalPayload
		a.block = warc.DigestOf(a.head)
	}
	return a, nil
}

func (a *answer) empty() bool { return a.x.Response.Size() == int64(len(a.head)) }

// isNew reports whether the payload is in the files for the first time, and whole.
func (a *answer) isNew() bool {
	return a.kind == warc.TypeResponse && !a.empty() && !a.x.Truncated
}

// addFields adds the fields that only this record has.
func (a *answer) addFields(h *warc.Header) {
	h.Add(warc.FieldContentType, warc.MediaResponse)
	if a.block != (warc.Digest{}) {
		h.Add(warc.FieldBlockDigest, a.block.String())
	}
	original := a.x.Original
	if a.profile != warc.ProfileNotModified || original != nil {
		h.Add(warc.FieldPayloadDigest, a.payload.String())
	}
	if a.x.Truncated || a.profile == warc.ProfileIdenticalPayload {
		h.Add(warc.FieldTruncated, "length") // also of a revisit, says section 6.7.2
	}
	h.Add(warc.FieldProfile, a.profile)
	if a.profile != "" && original != nil {
		h.Add(warc.FieldRefersToTargetURI, original.URL)
		h.Add(warc.FieldRefersToDate, warc.FormatDate(original.At))
	}
}

// digestFrom is that of what follows the first bytes of a content.
func digestFrom(c *spool.Content, first int64) (warc.Digest, error) {
	if b, ok := c.Bytes(); ok {
		return warc.DigestOf(b[first:]), nil
	}
	rest := warc.NewHash()
	_, err := io.Copy(rest, io.NewSectionReader(c.NewReader(), first, c.Size()-first))
	return warc.Sum(rest), err
}
