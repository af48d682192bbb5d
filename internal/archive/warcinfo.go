package archive

import (
	"time"

	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
)

// warcinfo makes the first record of WARC files.
type warcinfo struct {
	facts  []byte
	packer *warc.Packer
}

func newWarcinfo(o Options) (*warcinfo, error) {
	packer, err := warc.NewPacker(o.GzipLevel)
	if err != nil {
		return nil, err
	}
	var facts warc.Header
	facts.Add("software", o.Crawler.Software)
	facts.Add("format", "WARC File Format 1.1")
	facts.Add("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	facts.Add("hostname", o.Host)
	facts.Add("operator", o.Crawler.Operator)
	facts.Add("robots", o.Crawler.Robots)
	facts.Add("http-header-user-agent", o.Crawler.UserAgent)
	facts.Add("http-header-from", o.Crawler.From)
	return &warcinfo{facts: warc.AppendFields(nil, facts), packer: packer}, nil
}

// record is that of a file which is begun now.
func (i *warcinfo) record(name string, now time.Time) (*record, error) {
	var h warc.Header
	h.Add(warc.FieldType, warc.TypeInfo)
	h.Add(warc.FieldRecordID, warc.NewID())
	h.Add(warc.FieldDate, warc.FormatDate(now))
	h.Add(warc.FieldFilename, name)
	h.Add(warc.FieldContentType, warc.MediaFields)
	h.Add(warc.FieldBlockDigest, warc.DigestOf(i.facts).String())
	out := (*spool.Pool)(nil).NewWriter(0)
	if err := i.packer.Write(out, h, i.facts); err != nil {
		return nil, err
	}
	return &record{content: out.Content()}, nil
}
