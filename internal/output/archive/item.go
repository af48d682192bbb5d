package archive

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Visit is the result of a request. Fields that the formats in use do not need may be left out.
type Visit struct {
	Page     *Page     // nil: its URL has no final state yet
	Links    []Link    // of the page: Needs.Links
	Text     *Text     // of the page: Needs.Text
	Exchange *Exchange // Needs.Exchange; nil: there was no response
	// Beside are exchanges that the page has caused. They are kept with the Exchange of the page.
	Beside []*Exchange
}

// Exchange is one request and its response, byte for byte.
type Exchange struct {
	URL       string // of the request
	At        time.Time
	Address   netip.Addr // that the request went to
	Request   *spool.Content
	Response  *spool.Content // with its header, as received: in chunks and in its content encoding
	Chunked   bool           // its body is in chunks
	Protocol  string         // by ALPN (RFC 7301) if it was not HTTP/1.1, whose form Request and Response have: h2
	Truncated Truncation     // why Response is incomplete; empty: it is complete
	// Payload is the digest of what follows the header in Response, without chunks, if the caller knows it; else zero.
	Payload digest.Digest
	// Original is a stored response that may have the same payload. If it has, or if this response is a 304, a format
	// may write only the header of this response, with a reference to the original. Nil: none is known.
	Original *Original
	// Facts is what is known of the request besides.
	Facts Facts
}

// Fact is a named value that is kept with an exchange.
type Fact struct{ Name, Value string }

// Facts are the facts of an exchange, in their order.
type Facts []Fact

// Add adds a fact, unless its value is empty.
func (f *Facts) Add(name, value string) {
	if value != "" {
		*f = append(*f, Fact{name, value})
	}
}

// Truncation is the reason why only the start of a response is stored, in the words of WARC.
type Truncation string

// The reasons.
const (
	TooLong      Truncation = "length"      // it is longer than the limit
	TookTooLong  Truncation = "time"        // it did not end in time
	Disconnected Truncation = "disconnect"  // the connection broke, or ended before the response did
	Unspecified  Truncation = "unspecified" // reading ended for another reason
)

// Original is a stored response.
type Original struct {
	URL     string
	At      time.Time // when its request began
	Payload digest.Digest
}

// Item is the encoded output of one request. Its owner closes it when the output is committed or dropped.
type Item struct {
	records []*Record // of each format that is written; nil: it adds nothing

	// Payload is the digest of the response's body as received. Stored reports whether the files
	// contain this body from now on, whole and not empty, so that later records may refer to it.
	// Only a format with Needs.Exchange sets them.
	Payload digest.Digest
	Stored  bool
}

// Size returns how many bytes the item adds, before lines are compressed.
func (i *Item) Size() (n int64) {
	for _, r := range i.records {
		if r != nil {
			_ = r.each(func(r *Record) error { n += r.Size(); return nil })
		}
	}
	return n
}

// Empty reports whether the item adds nothing.
func (i *Item) Empty() bool {
	return !slices.ContainsFunc(i.records, func(r *Record) bool { return r != nil })
}

// Close frees what the item holds.
func (i *Item) Close() (err error) {
	for _, r := range i.records {
		if r != nil {
			_ = r.each(func(r *Record) error { err = errors.Join(err, r.Content.Close()); return nil })
		}
	}
	return err
}

// Encoder makes items. It is safe for concurrent use.
type Encoder struct {
	formats []func(*Item, *Visit) (*Record, error)
}

// NewEncoder returns an encoder for the formats of the options. The items are held in the pool. The
// error is that of Options.Validate.
func NewEncoder(o Options, pool *spool.Pool) (*Encoder, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e := &Encoder{}
	for _, f := range o.Written() {
		encode, err := f.NewEncoder(&o, pool)
		if err != nil {
			return nil, fmt.Errorf("archive: format %s: %w", f.Name(), err)
		}
		e.formats = append(e.formats, encode)
	}
	return e, nil
}

// Encode makes the item of a visit. The error is one of the spool, or an [ErrPage].
func (e *Encoder) Encode(v *Visit) (*Item, error) {
	item := &Item{records: make([]*Record, len(e.formats))}
	for i, encode := range e.formats {
		var err error
		if item.records[i], err = encode(item, v); err != nil {
			item.records[i] = nil
			return nil, errors.Join(err, item.Close())
		}
		if item.records[i] == nil {
			continue
		}
		for _, x := range v.Beside {
			r, err := encode(new(Item), &Visit{Exchange: x})
			if err != nil {
				return nil, errors.Join(err, item.Close())
			}
			if r != nil {
				item.records[i].beside = append(item.records[i].beside, r)
			}
		}
	}
	return item, nil
}
