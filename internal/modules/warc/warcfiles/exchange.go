//go:build !core

package warcfiles

import (
	"bufio"
	"bytes"
	"io"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// encoder makes the records of exchanges. It is safe for concurrent use.
type encoder struct {
	records warc.Compression
	pool    *spool.Pool
	info    *archive.Info
	others  *elsewhere           // nil: there is no other collection
	writers chan *exchangeWriter // one for each core: more at once would not be faster; nil: not made yet
}

// exchangeWriter makes the records of one exchange at a time, in memory that it reuses.
type exchangeWriter struct {
	packer        *warc.Packer
	unchunk       *bufio.Reader
	header        warc.Header // of the record at hand
	block         []byte      // of the record at hand, where it is made here
	facts         warc.Header // of the metadata record
	x             *archive.Exchange
	date, address string // as the headers have them
	info          string // the record that describes the file
}

// maxFields is the most fields that a record of an exchange has; the packer adds its length.
const maxFields = 16

// take returns an unused writer, for an exchange. At most as many as there are cores are in use.
func (e *encoder) take(x *archive.Exchange) (*exchangeWriter, error) {
	r := <-e.writers
	if r == nil {
		packer, err := warc.NewPacker(e.records)
		if err != nil {
			e.writers <- nil
			return nil, err
		}
		r = &exchangeWriter{packer: packer, unchunk: bufio.NewReader(nil), header: make(warc.Header, 0, maxFields)}
	}
	r.x, r.date, r.address, r.info = x, warc.FormatDate(x.At), "", e.info.ID()
	if x.Address.IsValid() {
		r.address = x.Address.Unmap().WithZone("").String()
	}
	return r, nil
}

// release ends the use of a writer.
func (e *encoder) release(r *exchangeWriter) {
	r.x = nil
	e.writers <- r
}

// exchange makes the records of an exchange: response or revisit, request, metadata.
func (e *encoder) exchange(item *archive.Item, x *archive.Exchange) (*archive.Record, error) {
	r, err := e.take(x)
	if err != nil {
		return nil, err
	}
	defer e.release(r)
	answer, err := e.newAnswer(r.unchunk, x)
	if err != nil {
		return nil, err
	}
	defer answer.close()
	e.findElsewhere(answer)
	out := e.pool.NewWriter(x.Response.Size()/3 + 2<<10)
	defer out.Discard()
	r.begin(answer.kind, answer.id)
	answer.addFields(&r.header)
	entry := warc.NewEntry(answer.kind, x.URL, x.At, r.header.Get(warc.FieldPayloadDigest), answer.head)
	if err := r.writeAnswer(out, answer); err != nil {
		return nil, err
	}
	entry.Length = out.Size()
	if err := r.writeRequest(out, answer.id); err != nil {
		return nil, err
	}
	if len(x.Facts) > 0 {
		if err := r.writeFacts(out, answer.id); err != nil {
			return nil, err
		}
	}
	item.Payload, item.Stored = answer.payload, answer.isNew()
	return &archive.Record{Content: out.Content(), Entry: entry.AppendStart(nil), Info: r.info}, nil
}

// begin begins the header of a record with the fields that all records of an exchange have.
func (r *exchangeWriter) begin(kind, id string) {
	r.header = r.header[:0]
	r.header.Add(warc.FieldType, kind)
	r.header.Add(warc.FieldRecordID, id)
	r.header.Add(warc.FieldDate, r.date)
	r.header.Add(warc.FieldTargetURI, r.x.URL)
	r.header.Add(warc.FieldInfoID, r.info)
	if kind != warc.TypeMetadata {
		r.header.Add(warc.FieldIPAddress, r.address)
		r.header.Add(warc.FieldProtocol, r.x.Protocol)
	}
}

// writeAnswer writes the record whose header was made.
func (r *exchangeWriter) writeAnswer(out io.Writer, a *answer) error {
	if a.profile == warc.ProfileIdenticalPayload {
		return r.packer.Write(out, r.header, a.head)
	}
	if b, ok := a.body.Bytes(); ok {
		return r.packer.Write(out, r.header, a.head, b[a.first:])
	}
	body := io.MultiReader(bytes.NewReader(a.head), a.bodyReader())
	return r.packer.WriteFrom(out, r.header, body, int64(len(a.head))+a.size())
}

func (r *exchangeWriter) writeRequest(out io.Writer, answer string) error {
	block, err := r.x.Request.Load(nil, r.x.Request.Size())
	if err != nil {
		return err
	}
	return r.writeBeside(out, answer, warc.TypeRequest, warc.MediaRequest, block)
}

func (r *exchangeWriter) writeFacts(out io.Writer, answer string) error {
	r.facts = r.facts[:0]
	for _, f := range r.x.Facts {
		r.facts = append(r.facts, warc.Field(f))
	}
	r.block = warc.AppendFields(r.block[:0], r.facts)
	return r.writeBeside(out, answer, warc.TypeMetadata, warc.MediaFields, r.block)
}

// writeBeside writes a record that belongs to that of the response.
func (r *exchangeWriter) writeBeside(out io.Writer, answer, kind, media string, block []byte) error {
	r.begin(kind, warc.NewID())
	r.header.Add(warc.FieldConcurrentTo, answer)
	r.header.Add(warc.FieldContentType, media)
	r.header.Add(warc.FieldBlockDigest, digest.Of(block).String())
	return r.packer.Write(out, r.header, block)
}
