//go:build !core

package warcfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// warcinfo makes the first record of WARC files, and says to the encoders what its ID is.
type warcinfo struct {
	facts   warc.Header
	packer  *warc.Packer
	records warc.Compression
	info    *archive.Info
	current string // the ID in the file being written; empty: unknown
}

func newWarcinfo(o *archive.Options) (*warcinfo, error) {
	records := warc.Compression(o.Records)
	packer, err := warc.NewPacker(records)
	if err != nil {
		return nil, err
	}
	var facts warc.Header
	facts.Add("software", o.Crawler.Software)
	facts.Add("format", "WARC File Format 1.1")
	facts.Add("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	facts.Add("isPartOf", o.Prefix)
	facts.Add("hostname", o.Host)
	facts.Add("operator", o.Crawler.Operator)
	facts.Add("robots", o.Crawler.Robots)
	facts.Add("http-header-user-agent", o.Crawler.UserAgent)
	facts.Add("http-header-from", o.Crawler.From)
	return &warcinfo{facts: facts, packer: packer, records: records, info: o.Info}, nil
}

// record returns the record of a file that is begun now.
func (i *warcinfo) record(name string, now time.Time) (*archive.Record, error) {
	facts := i.facts
	if i.info != nil && i.info.Tags != nil {
		facts = slices.Clone(facts)
		facts.Add("tags", strings.Join(i.info.Tags(), ", "))
	}
	i.announce(warc.NewID())
	block := warc.AppendFields(nil, facts)
	var h warc.Header
	h.Add(warc.FieldType, warc.TypeInfo)
	h.Add(warc.FieldRecordID, i.current)
	h.Add(warc.FieldDate, warc.FormatDate(now))
	h.Add(warc.FieldFilename, name)
	h.Add(warc.FieldContentType, warc.MediaFields)
	h.Add(warc.FieldBlockDigest, digest.Of(block).String())
	start := i.records.Start()
	out := (*spool.Pool)(nil).NewWriter(int64(len(start)))
	if _, err := out.Write(start); err != nil {
		return nil, err
	}
	if err := i.packer.Write(out, h, block); err != nil {
		return nil, err
	}
	return &archive.Record{Content: out.Content()}, nil
}

// announce says which record describes the file being written.
func (i *warcinfo) announce(id string) {
	i.current = id
	i.info.Set(id)
}

// fit returns the records of an exchange with the ID that their file has. They have that of another one if they were
// made before the file was begun.
func (i *warcinfo) fit(r *archive.Record) (*archive.Record, error) {
	if r.Entry == nil || r.Info == i.current || i.current == "" {
		return r, nil
	}
	out := (*spool.Pool)(nil).NewWriter(r.Size())
	fitted := &archive.Record{Info: i.current}
	all := warc.NewReader(io.MultiReader(bytes.NewReader(i.records.Start()), r.Content.NewReader()))
	for {
		rec, err := all.Next()
		if errors.Is(err, io.EOF) {
			fitted.Content = out.Content()
			return fitted, nil
		}
		if err != nil {
			return nil, err
		}
		var h warc.Header
		for _, f := range rec.Header {
			if f.Name == warc.FieldLength || f.Name == warc.FieldInfoID {
				continue // the packer adds the length
			}
			h.Add(f.Name, f.Value)
			if f.Name == warc.FieldTargetURI {
				h.Add(warc.FieldInfoID, i.current)
			}
		}
		if err := i.packer.WriteFrom(out, h, rec.Block, rec.Size); err != nil {
			return nil, err
		}
		if fitted.Entry == nil { // that of the response, which comes first
			at := bytes.LastIndex(r.Entry, []byte(`,"length":"`))
			fitted.Entry = fmt.Appendf(nil, `%s,"length":"%d"`, r.Entry[:at], out.Size())
		}
	}
}

// continues reports whether records can follow those of a file: it has the dictionary that they are compressed with. It
// announces the ID of its first record; one that is damaged has none.
func (i *warcinfo) continues(file io.Reader) (bool, error) {
	i.announce("")
	var start bytes.Buffer
	if i.records.Format == warc.FormatZstd { // nothing else has a dictionary
		same, err := hasDictionary(io.TeeReader(file, &start), i.records.Dictionary)
		if err != nil || !same {
			return false, err
		}
	}
	first, err := warc.NewReader(io.MultiReader(&start, file)).Next()
	switch {
	case err == nil && first.Type() == warc.TypeInfo:
		i.announce(first.Header.Get(warc.FieldRecordID))
	case err != nil && !errors.Is(err, warc.ErrFormat) && !errors.Is(err, warc.ErrTorn) && !errors.Is(err, io.EOF):
		return false, err
	}
	return true, nil
}
