package archive

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
)

// Visit is the result of a request. Fields that the formats in use do not need may be left out.
type Visit struct {
	Page     *Page     // for FormatJSONL; nil: its URL has no final state yet
	Links    []Link    // of the page
	Text     *Text     // of the page
	Exchange *Exchange // for FormatWARC; nil: there was no response
}

// Item is the encoded output of one request. Its owner closes it when the output is committed or
// dropped.
type Item struct {
	records [numForms]*record

	// Payload is the digest of the response's body as received. Stored reports whether the files
	// contain this body from now on, whole and not empty, so that later records may refer to it.
	// Only with FormatWARC.
	Payload warc.Digest
	Stored  bool
}

// Size returns how many bytes the item adds, before lines are compressed.
func (i *Item) Size() (n int64) {
	for _, r := range i.records {
		if r != nil {
			n += r.size()
		}
	}
	return n
}

// Empty reports whether the item adds nothing.
func (i *Item) Empty() bool { return i.records == [numForms]*record{} }

// Close frees what the item holds.
func (i *Item) Close() (err error) {
	for _, r := range i.records {
		if r != nil {
			err = errors.Join(err, r.content.Close())
		}
	}
	return err
}

// Encoder makes items. It is safe for concurrent use.
type Encoder struct {
	o       Options
	pool    *spool.Pool
	writers chan *exchangeWriter // one for each core: more at once would not be faster; nil: not made yet
}

// NewEncoder returns an encoder for the formats of the options. The items are held in the pool. The
// error is that of Options.Validate.
func NewEncoder(o Options, pool *spool.Pool) (*Encoder, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e := &Encoder{o: o, pool: pool, writers: make(chan *exchangeWriter, runtime.GOMAXPROCS(0))}
	for range cap(e.writers) {
		e.writers <- nil
	}
	return e, nil
}

// Encode makes the item of a visit. The error is one of the spool, or an [ErrPage].
func (e *Encoder) Encode(v *Visit) (*Item, error) {
	item := &Item{}
	err := e.encode(item, v)
	if err != nil {
		return nil, errors.Join(err, item.Close())
	}
	return item, nil
}

func (e *Encoder) encode(item *Item, v *Visit) error {
	if v.Exchange != nil && e.o.Has(FormatWARC) {
		r, err := e.exchange(item, v.Exchange)
		if err != nil {
			return fmt.Errorf("archive: records of %s: %w", v.Exchange.URL, err)
		}
		item.records[formWARC] = r
	}
	if v.Page == nil {
		return nil
	}
	if e.o.Has(FormatJSONL) {
		if err := item.lines(formPages, v.Page.Encode); err != nil {
			return err
		}
	}
	if len(v.Links) > 0 && e.o.Has(FormatLinks) {
		if err := item.lines(formLinks,
			func() ([]byte, error) { return encodeLinks(v.Page.URL, v.Links) }); err != nil {
			return err
		}
	}
	if v.Text != nil && e.o.Has(FormatText) {
		return item.lines(formText, func() ([]byte, error) { return encodeText(v.Page.URL, v.Page.FetchedAt, v.Text) })
	}
	return nil
}

// lines makes the record of a form of lines.
func (i *Item) lines(f form, encode func() ([]byte, error)) error {
	b, err := encode()
	if err == nil {
		i.records[f] = &record{content: spool.Of(b)}
	}
	return err
}
