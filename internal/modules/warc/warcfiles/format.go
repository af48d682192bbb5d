//go:build !core

package warcfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Name is the name of the format in archive.Options.Formats.
const Name = "warc"

// Format returns the format: requests and responses, WARC 1.1.
func Format() archive.Format { return format{} }

type format struct{}

// Name implements archive.Format.
func (format) Name() string { return Name }

// Validate implements archive.Format.
func (format) Validate(o *archive.Options) error {
	var name error
	if !archive.IsNamePart(o.Prefix) || !archive.IsNamePart(o.Host) {
		name = fmt.Errorf("prefix is %q and the host %q, allowed are letters, digits, dots, dashes and underscores",
			o.Prefix, o.Host)
	}
	return errors.Join(name, warc.Compression(o.Records).Validate())
}

// Needs implements archive.Format.
func (format) Needs(o *archive.Options) archive.Needs {
	return archive.Needs{Exchange: true, Links: o.Outlinks}
}

// Naming implements archive.Format.
func (format) Naming() archive.Naming { return naming("", "", "") }

// NewEncoder implements archive.Format.
func (format) NewEncoder(o *archive.Options, pool *spool.Pool) (
	func(*archive.Item, *archive.Visit) (*archive.Record, error), error) {
	others, err := newElsewhere(o)
	if err != nil {
		return nil, err
	}
	e := &encoder{others: others, records: warc.Compression(o.Records), pool: pool, info: o.Info,
		writers: make(chan *exchangeWriter, runtime.GOMAXPROCS(0))}
	for range cap(e.writers) {
		e.writers <- nil
	}
	return func(item *archive.Item, v *archive.Visit) (*archive.Record, error) {
		if v.Exchange == nil {
			return nil, nil
		}
		r, err := e.exchange(item, v.Exchange)
		if err != nil {
			return nil, fmt.Errorf("archive: records of %s: %w", v.Exchange.URL, err)
		}
		return r, nil
	}, nil
}

// NewSink implements archive.Format.
func (format) NewSink(o *archive.Options, d archive.Disk) (archive.Sink, error) {
	info, err := newWarcinfo(o)
	if err != nil {
		return nil, err
	}
	records := warc.Compression(o.Records)
	c := archive.SeriesOptions{
		Naming: naming(o.Prefix, o.Host, records.Extension()), Extension: records.Extension(),
		Head: info.record, Index: newIndex(d, o.Dir),
	}
	if o.Info != nil {
		c.Fit = info.fit
	}
	if o.Info != nil || records.Format == warc.FormatZstd { // nothing else has a dictionary
		c.Continues = info.continues
	}
	return archive.NewSeries(o, d, c), nil
}

// hasDictionary reports whether a file begins with a dictionary. One that is damaged has none, so that what is there
// stays as it is.
func hasDictionary(file io.Reader, want []byte) (bool, error) {
	dictionary, err := warc.ReadDictionary(file)
	if errors.Is(err, warc.ErrFormat) || errors.Is(err, warc.ErrTorn) {
		return false, nil
	}
	return bytes.Equal(dictionary, want), err
}

// naming returns the names of WARC files: "amble-20261120121415-000001-host.warc.gz". They have the parts that are
// usual in archives: prefix, time, serial number, machine. The extension is that of their compression.
func naming(prefix, host, extension string) archive.Naming {
	return archive.Naming{
		Make: func(serial int, now time.Time) string {
			return prefix + "-" + now.UTC().Format("20060102150405") + "-" + archive.SerialText(serial) + "-" + host +
				extension
		},
		Pattern: regexp.MustCompile(`^[^/]+-\d{14}-(\d{6,19})-[^/]*\.warc\.(?:gz|zst)$`),
	}
}

// baseOf returns the name of a WARC file without its extension.
func baseOf(name string) string {
	base, _ := warc.Base(name)
	return base
}
