package extract

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Role is the role of a URL in a list.
type Role uint8

// The roles.
const (
	RolePage      Role = iota // a page
	RoleSitemap               // another sitemap, listed by an index
	RoleAlternate             // the page before it in another language or form
	RoleMedia                 // an image, a video or an enclosure; only with ListOptions.Media
	RoleNext                  // the next page of the feed (RFC 5005 section 3)
)

// String returns the name of the role, such as "page".
func (r Role) String() string {
	return [...]string{"page", "sitemap", "alternate", "media", "next"}[r]
}

// Frequency is how often a page changes, according to its sitemap. The numbers are stored and therefore stable.
type Frequency uint8

// The frequencies of sitemaps.org.
const (
	FrequencyUnknown Frequency = 0
	Always           Frequency = 1
	Hourly           Frequency = 2
	Daily            Frequency = 3
	Weekly           Frequency = 4
	Monthly          Frequency = 5
	Yearly           Frequency = 6
	Never            Frequency = 7
)

var frequencyNames = [...]string{"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// String returns the word of sitemaps.org; "" for FrequencyUnknown.
func (f Frequency) String() string { return frequencyNames[f] }

// Item is one URL of a sitemap or feed, with its data.
type Item struct {
	URL       weburl.URL
	Role      Role
	Modified  time.Time // when it last changed; zero: unknown
	Frequency Frequency
	Priority  float64 // from 0 to 1; 0.5 if there is none, as sitemaps.org defines
}

// defaultPriority is the priority of a page whose sitemap gives none.
const defaultPriority = 0.5

// ListOptions bound the cost of one list, and select its URLs.
type ListOptions struct {
	MaxItems int   // URLs taken from one file
	MaxBytes int64 // of a file, decompressed
	Media    bool  // images, videos and enclosures too
}

// DefaultListOptions returns bounds beyond those of sitemaps.org, 50,000 URLs in 50 MB: 100,000 URLs in 50 MiB.
func DefaultListOptions() ListOptions { return ListOptions{MaxItems: 100_000, MaxBytes: 50 << 20} }

// Validate reports a bound that is not positive, by its name.
func (o ListOptions) Validate() error {
	if o.MaxItems <= 0 || o.MaxBytes <= 0 {
		return fmt.Errorf("extract: MaxItems %d and MaxBytes %d: must be more than 0", o.MaxItems, o.MaxBytes)
	}
	return nil
}

// List is the data of a whole sitemap or feed.
type List struct {
	Kind      ListKind
	Title     string // of a feed, at most 1 KiB
	Items     int    // passed on
	Refused   int    // that are no http or https URL
	Truncated bool   // the file continues beyond a bound, or is incomplete
}

// errEnough ends the reading of a list at a bound.
var errEnough = errors.New("bound reached")

// ReadList reads a sitemap or feed of the given kind, which [SniffList] recognises, and passes on its URLs one by one,
// in order. It holds at most one element of the file. base is the URL from which the file was fetched, contentType its
// Content-Type. Defects of a file are never an error: it is read as far as possible. The error is that of each, which
// ends the reading, or means that the options are not valid.
func ReadList(r io.Reader, kind ListKind, contentType string, base weburl.URL, o ListOptions,
	each func(Item) error) (List, error) {
	if err := o.Validate(); err != nil {
		return List{}, err
	}
	l := &listReader{list: List{Kind: kind}, base: base, o: o, each: each}
	in := bufio.NewReaderSize(r, 4096)
	if magic, _ := in.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			l.list.Truncated = true
			return l.list, nil
		}
		in = bufio.NewReaderSize(unzipped, 4096)
	}
	bounded := &boundedReader{r: in, left: o.MaxBytes}
	var err error
	switch kind {
	case ListSitemap, ListIndex:
		err = l.readSitemap(toUTF8Reader(bounded, contentType))
	case ListRSS, ListAtom:
		err = l.readFeed(toUTF8Reader(bounded, contentType))
	case ListText:
		err = l.readText(toUTF8Reader(bounded, contentType))
	case ListJSON:
		err = l.readJSON(bounded)
	}
	l.list.Truncated = l.list.Truncated || bounded.err != nil
	if errors.Is(err, errEnough) {
		l.list.Truncated, err = true, nil
	}
	return l.list, err
}

// listReader reads one file.
type listReader struct {
	list List
	base weburl.URL
	o    ListOptions
	each func(Item) error
	seen int // items, including those without a URL
}

// next counts an item of any content.
func (l *listReader) next() error {
	if l.seen++; l.seen > l.o.MaxItems {
		return errEnough
	}
	return nil
}

// add passes on a URL. raw is resolved against base.
func (l *listReader) add(base weburl.URL, raw string, item Item) error {
	if raw == "" || item.Role == RoleMedia && !l.o.Media {
		return nil
	}
	if l.list.Items+l.list.Refused >= l.o.MaxItems {
		return errEnough
	}
	u, err := base.Resolve(raw)
	if err != nil {
		l.list.Refused++
		return nil
	}
	item.URL = u
	l.list.Items++
	return l.each(item)
}

// boundedReader ends after a number of bytes, and records why it ended early.
type boundedReader struct {
	r    io.Reader
	left int64
	err  error // of the reader below, or errEnough
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if n, _ := b.r.Read(make([]byte, 1)); n > 0 {
			b.err = errEnough
		}
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.err, err = err, io.EOF
	}
	return n, err
}
