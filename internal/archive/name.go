package archive

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
)

// The suffixes that the name of a file can have.
const (
	suffixOpen = ".open" // unfinished, or not yet committed completely
	// suffixUnmarked marks a file that was set aside; a second file of the same name has
	// ".unmarked.2".
	suffixUnmarked = ".unmarked"
)

// anySuffix matches the suffix of a file's name.
var anySuffix = regexp.MustCompile(`(?:\.open|\.unmarked(?:\.[1-9]\d*)?)?$`)

// isAside reports whether a suffix is that of a file that was set aside.
func isAside(suffix string) bool { return strings.HasPrefix(suffix, suffixUnmarked) }

// naming is how the files of one series are named.
type naming struct {
	// make returns the name of a new file when it is complete, as marks name it.
	make func(serial int, now time.Time) string
	// pattern matches every name that make can return, with any settings. Its group is the serial
	// number.
	pattern *regexp.Regexp
}

// The name of a numbered series: "pages-000001.jsonl", followed by the extension of its
// compression.
func numbered(prefix, extension string) naming {
	return naming{
		make:    func(serial int, _ time.Time) string { return prefix + serialText(serial) + extension },
		pattern: regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `(\d{6,19})\.jsonl(?:\.gz|\.zst)?$`),
	}
}

// The name of a WARC file: "amble-20261120121415-000001-host.warc.gz". It has the parts that are
// usual in archives: prefix, time, serial number, machine. The extension is that of its compression.
func dated(prefix, host, extension string) naming {
	return naming{
		make: func(serial int, now time.Time) string {
			return prefix + "-" + now.UTC().Format("20060102150405") + "-" + serialText(serial) + "-" + host + extension
		},
		pattern: regexp.MustCompile(`^[^/]+-\d{14}-(\d{6,19})-[^/]*\.warc\.(?:gz|zst)$`),
	}
}

// warcBase returns the name of a WARC file without its extension.
func warcBase(name string) string {
	base, _ := warc.Base(name)
	return base
}

func serialText(serial int) string { return fmt.Sprintf("%06d", serial) }

// parse returns the serial number of a file of the series, its name when complete, and its suffix.
// Other files are not ok.
func (n naming) parse(file string) (serial int, name, suffix string, ok bool) {
	at := anySuffix.FindStringIndex(file)[0]
	name, suffix = file[:at], file[at:]
	match := n.pattern.FindStringSubmatch(name)
	if match == nil {
		return 0, "", "", false
	}
	serial, err := strconv.Atoi(match[1])
	if err != nil || serial < 1 || serialText(serial) != match[1] {
		return 0, "", "", false
	}
	return serial, name, suffix, true
}

// warcinfo makes the first record of WARC files.
type warcinfo struct {
	facts  []byte
	packer *warc.Packer
	start  []byte // what the file has before it
}

func newWarcinfo(o Options) (*warcinfo, error) {
	packer, err := warc.NewPacker(o.Records)
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
	return &warcinfo{facts: warc.AppendFields(nil, facts), packer: packer, start: o.Records.Start()}, nil
}

// record returns the record of a file that is begun now.
func (i *warcinfo) record(name string, now time.Time) (*record, error) {
	var h warc.Header
	h.Add(warc.FieldType, warc.TypeInfo)
	h.Add(warc.FieldRecordID, warc.NewID())
	h.Add(warc.FieldDate, warc.FormatDate(now))
	h.Add(warc.FieldFilename, name)
	h.Add(warc.FieldContentType, warc.MediaFields)
	h.Add(warc.FieldBlockDigest, warc.DigestOf(i.facts).String())
	out := (*spool.Pool)(nil).NewWriter(int64(len(i.start)))
	if _, err := out.Write(i.start); err != nil {
		return nil, err
	}
	if err := i.packer.Write(out, h, i.facts); err != nil {
		return nil, err
	}
	return &record{content: out.Content()}, nil
}
