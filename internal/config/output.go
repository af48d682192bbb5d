package config

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
)

// output checks the section.
func (k *checker) output() {
	k.outputFormats()
	if k.c.Output.ZstdDictionary != "" && k.c.Output.WARC != archive.CompressZstd {
		k.conflict("output.zstd_dictionary",
			"is for WARC records with zstd; set output.warc_compress to zstd, or remove it")
	}
	k.webhook()
	if !archive.IsNamePart(k.c.Output.Prefix) {
		k.reject("output.prefix", "want the beginning of a file name, such as amble: letters, digits, dots, dashes "+
			"and underscores, a letter or digit first")
	}
}

// webhook checks that the format of that name has a receiver, and a receiver its format.
func (k *checker) webhook() {
	w := &k.c.Output.Webhook
	receiver, err := url.Parse(w.URL)
	isURL := err == nil && (receiver.Scheme == "http" || receiver.Scheme == "https") && receiver.Host != ""
	switch {
	case w.URL != "" && !isURL:
		k.reject("output.webhook.url", "want the URL of a receiver, such as https://example.com/hook")
	case !slices.Contains(k.c.Output.Format, "webhook") && w.URL != "":
		k.conflict("output.webhook.url", "is for the format webhook; add webhook to output.format, or remove it")
	case slices.Contains(k.c.Output.Format, "webhook") && w.URL == "":
		k.conflict("output.format", "has webhook, which needs output.webhook.url")
	case w.URL != "" && w.Secret == "":
		k.conflict("output.webhook.secret", "is empty; the receiver needs it to know who posts")
	}
}

func (k *checker) outputFormats() {
	const key = "output.format"
	known, written := Choices(key), k.c.Output.Format
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

// ArchiveOptions returns the options of internal/output/archive. version is that of the program.
func (c *Config) ArchiveOptions(version string) archive.Options {
	all, _ := c.options()
	o := all.Archive
	o.Dir, o.Host = c.OutputDir(), machine()
	if o.Records.Format == archive.CompressZstd {
		o.Records.Level = c.Output.ZstdLevel
	}
	o.Crawler = archive.Crawler{
		Software: "amble/" + version, UserAgent: c.UserAgent(version), From: c.mailAddress(),
		Operator: c.Fetch.Contact,
		Robots:   map[bool]string{true: "obey", false: "ignore, but for Crawl-delay"}[c.Robots.Obey],
	}
	return o
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
	MaxSize ByteSize      `mapstructure:"max_size" range:"0|1MiB..1024TiB"`
	Keep    time.Duration `mapstructure:"keep" range:"0s..876000h"`
}
