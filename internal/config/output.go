package config

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/formats"
	"github.com/amble-crawler/amble/internal/requestlog"
)

func (k *checker) outputNumbers() {
	o := k.c.Output
	between(k, "output.max_file", o.MaxFile, 64*KiB, 1*TiB)
	between(k, "output.max_age", o.MaxAge, 0, year)
	between(k, "output.gzip_level", o.GzipLevel, 1, archive.MaxRecordLevel(archive.CompressGzip))
	between(k, "output.zstd_level", o.ZstdLevel, 1, archive.MaxRecordLevel(archive.CompressZstd))
}

func (k *checker) outputChoices() {
	k.outputFormats()
	k.oneOf("output.compress", k.c.Output.Compress)
	k.oneOf("output.warc_compress", k.c.Output.WARC)
	if k.c.Output.ZstdDictionary != "" && k.c.Output.WARC != archive.CompressZstd {
		k.conflict("output.zstd_dictionary",
			"is for WARC records with zstd; set output.warc_compress to zstd, or remove it")
	}
	if !archive.IsNamePart(k.c.Output.Prefix) {
		k.reject("output.prefix", "want the beginning of a file name, such as amble: letters, digits, dots, dashes "+
			"and underscores, a letter or digit first")
	}
}

func (k *checker) outputFormats() {
	const key = "output.format"
	known, written := choices()[key], k.c.Output.Format
	names := known[:len(known)-1] // the last one is none
	last := len(names) - 1
	want := "want " + strings.Join(names[:last], ", ") + " or " + names[last] + ", or none to write nothing"
	if len(written) == 0 {
		k.reject(key, want)
	}
	for i, name := range written {
		switch {
		case slices.Contains(written[:i], name):
			k.rejectItem(key, i, name, "is in the list twice; keep one")
		case !slices.Contains(known, name):
			k.rejectItem(key, i, name, want)
		}
	}
	if len(written) > 1 && slices.Contains(written, archive.FormatNone) {
		k.rejectItem(key, slices.Index(written, archive.FormatNone), archive.FormatNone,
			"means that nothing is written, and must be the only item; keep either none or the others")
	}
}

// ArchiveOptions returns the options of internal/archive. version is that of the program.
func (c *Config) ArchiveOptions(version string) archive.Options {
	robots := "obey"
	if !c.Robots.Obey {
		robots = "ignore, but for Crawl-delay"
	}
	records := archive.Compression{Format: c.Output.WARC, Level: c.Output.GzipLevel}
	if records.Format == archive.CompressZstd {
		records.Level = c.Output.ZstdLevel
	}
	return archive.Options{
		Dir:            c.OutputDir(),
		Known:          formats.All(),
		Formats:        c.Output.Format,
		Compress:       c.Output.Compress,
		MaxFileBytes:   int64(c.Output.MaxFile),
		MaxFileAge:     c.Output.MaxAge,
		Prefix:         c.Output.Prefix,
		Host:           machine(),
		Outlinks:       c.Output.Outlinks,
		Records:        records,
		DictionaryFile: c.Output.ZstdDictionary,
		Crawler: archive.Crawler{
			Software: "amble/" + version, UserAgent: c.UserAgent(version), From: c.mailAddress(),
			Operator: c.Fetch.Contact, Robots: robots,
		},
	}
}

// machine returns the name of this machine in a form that file names can have.
func machine() string {
	name, err := os.Hostname()
	name = strings.Map(func(r rune) rune {
		if archive.IsNamePart("a" + string(r)) {
			return r
		}
		return '-'
	}, name)
	if err != nil || !archive.IsNamePart(name) {
		return archive.DefaultOptions().Host
	}
	return name
}

// Audit bounds the request log, which amble audit reads.
type Audit struct {
	MaxSize ByteSize      `mapstructure:"max_size"` // of all files; 0: no log is kept
	Keep    time.Duration `mapstructure:"keep"`     // of a file; 0: no limit
}

// RequestLogOptions returns the options of internal/requestlog.
func (c *Config) RequestLogOptions() requestlog.Options {
	return requestlog.Options{MaxSize: int64(c.Audit.MaxSize), Keep: c.Audit.Keep}
}

// audit checks the section.
func (k *checker) audit() {
	if size := k.c.Audit.MaxSize; size != 0 && (size < requestlog.MinSize || size > 1024*TiB) {
		k.reject("audit.max_size", "want 0, or 1MiB to 1024TiB")
	}
	between(k, "audit.keep", k.c.Audit.Keep, 0, 100*year)
}
