package archive

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
)

// Exchange is one request and its answer, byte for byte, for FormatWARC.
type Exchange struct {
	URL       string // that was asked for
	At        time.Time
	Address   netip.Addr // that was asked
	Request   *spool.Content
	Response  *spool.Content // with its header, as it came: in chunks and packed, if it was
	Truncated bool           // Response is not all of it, because that was too long
	// Original is a stored answer that may have the same payload. Where it has, or where this answer is a 304, only the header
	// of this answer is written, with a pointer to the original. Nil: none is known.
	Original *Original
	// Facts are what the metadata record says. Empty: there is none.
	Facts []warc.Field
}

// Original is a stored answer.
type Original struct {
	URL     string
	At      time.Time // when its request began
	Payload warc.Digest
}

// exchange makes the records of an exchange: response or revisit, request, metadata.
func (e *Encoder) exchange(item *Item, x *Exchange) (_ *record, err error) {
	answer, err := newAnswer(x)
	if err != nil {
		return nil, err
	}
	packer := <-e.packers
	defer func() { e.packers <- packer }()
	if packer == nil {
		if packer, err = warc.NewPacker(e.o.GzipLevel); err != nil {
			return nil, err
		}
	}
	out := e.pool.NewWriter(x.Response.Size()/3 + 2<<10)
	defer out.Discard()
	if err := answer.write(packer, out); err != nil {
		return nil, err
	}
	length := out.Size()
	if err := x.writeRequest(packer, out, answer.id); err != nil {
		return nil, err
	}
	if len(x.Facts) > 0 {
		if err := x.writeFacts(packer, out, answer.id); err != nil {
			return nil, err
		}
	}
	item.Payload, item.Stored = answer.payload, answer.isNew()
	entry, ok := warc.EntryOf(answer.header, answer.head)
	if !ok {
		return nil, errors.New("its URL or time cannot be indexed")
	}
	entry.Length = length
	return &record{content: out.Content(), entry: entry.AppendStart(nil)}, nil
}

// answer is the record of an answer in the making.
type answer struct {
	x       *Exchange
	id      string
	head    []byte // of the HTTP answer
	kind    string
	profile string      // of a revisit
	block   warc.Digest // zero where that of the payload is enough: the gzip member has a checksum of all
	payload warc.Digest
	header  warc.Header
}

// newAnswer decides what the record will be, and makes its header.
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
	if a.payload, err = digestFrom(x.Response, int64(n)); err != nil {
		return nil, err
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
	a.header = a.fields()
	return a, nil
}

func (a *answer) empty() bool { return a.x.Response.Size() == int64(len(a.head)) }

// isNew reports whether the payload is in the files for the first time, and whole.
func (a *answer) isNew() bool {
	return a.kind == warc.TypeResponse && !a.empty() && !a.x.Truncated
}

// fields are the header of the record, less its length.
func (a *answer) fields() (h warc.Header) {
	x := a.x
	h = x.fields(a.kind, a.id)
	h.Add(warc.FieldContentType, warc.MediaResponse)
	if a.block != (warc.Digest{}) {
		h.Add(warc.FieldBlockDigest, a.block.String())
	}
	if a.profile != warc.ProfileNotModified || x.Original != nil {
		h.Add(warc.FieldPayloadDigest, a.payload.String())
	}
	if x.Truncated || a.profile == warc.ProfileIdenticalPayload {
		h.Add(warc.FieldTruncated, "length") // also of a revisit, says section 6.7.2
	}
	if a.profile == "" {
		return h
	}
	h.Add(warc.FieldProfile, a.profile)
	if x.Original != nil {
		h.Add(warc.FieldRefersToTargetURI, x.Original.URL)
		h.Add(warc.FieldRefersToDate, warc.FormatDate(x.Original.At))
	}
	return h
}

func (a *answer) write(p *warc.Packer, out io.Writer) error {
	if a.profile == warc.ProfileIdenticalPayload {
		return p.Write(out, a.header, a.head)
	}
	if b, ok := a.x.Response.Bytes(); ok {
		return p.Write(out, a.header, b)
	}
	return p.WriteFrom(out, a.header, a.x.Response.NewReader(), a.x.Response.Size())
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

// fields are those that all records of an exchange have.
func (x *Exchange) fields(kind, id string) warc.Header {
	h := make(warc.Header, 0, 16)
	h.Add(warc.FieldType, kind)
	h.Add(warc.FieldRecordID, id)
	h.Add(warc.FieldDate, warc.FormatDate(x.At))
	h.Add(warc.FieldTargetURI, x.URL)
	if x.Address.IsValid() && kind != warc.TypeMetadata {
		h.Add(warc.FieldIPAddress, x.Address.Unmap().WithZone("").String())
	}
	return h
}

func (x *Exchange) writeRequest(p *warc.Packer, out io.Writer, answer string) error {
	block, err := x.Request.Load(nil, x.Request.Size())
	if err != nil {
		return err
	}
	h := x.fields(warc.TypeRequest, warc.NewID())
	h.Add(warc.FieldConcurrentTo, answer)
	h.Add(warc.FieldContentType, warc.MediaRequest)
	h.Add(warc.FieldBlockDigest, warc.DigestOf(block).String())
	return p.Write(out, h, block)
}

func (x *Exchange) writeFacts(p *warc.Packer, out io.Writer, answer string) error {
	block := warc.AppendFields(nil, x.Facts)
	h := x.fields(warc.TypeMetadata, warc.NewID())
	h.Add(warc.FieldConcurrentTo, answer)
	h.Add(warc.FieldContentType, warc.MediaFields)
	h.Add(warc.FieldBlockDigest, warc.DigestOf(block).String())
	return p.Write(out, h, block)
}
