package archive

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// ErrOption is wrapped by every error of [Options.Validate].
var ErrOption = errors.New("archive: bad option")

// Options say where and how the output is written.
type Options struct {
	// Dir is the directory of the files. It is made if it does not exist.
	Dir string
	// Known are the formats that the program has, in the order in which they are written.
	Known []Format
	// Formats are the names of those that are written, in parallel. FormatNone excludes all others.
	Formats []string
	// MaxFileBytes is the size at which a new file is begun. A line, or the records of one request,
	// are never divided: longer ones get a file of their own.
	MaxFileBytes int64
	// MaxFileAge is the time after which a file is complete. It is checked whenever something is
	// written, and by Writer.Expire. 0: no limit.
	MaxFileAge time.Duration
	// Compress is the compression of files of lines: CompressNone, CompressGzip or CompressZstd.
	Compress string

	// Queue is how many bytes may wait for a receiver.
	Queue int64

	// Prefix is the start of the names of files that say where they come from.
	Prefix string
	// Host is the name of this machine in such names.
	Host string
	// Outlinks says that records of exchanges list the links of their page. The caller fills them in.
	Outlinks bool
	// Records is the compression of files whose records are compressed one by one. Open and NewEncoder need the same
	// one.
	Records Compression
	// DictionaryFile is the file from which Load reads Records.Dictionary. Empty: none.
	DictionaryFile string
	// Crawler describes the crawler in files that say who wrote them.
	Crawler Crawler
	// Dedupe is the index of another collection, whose bodies are referred to: a file or the URL of a server. Empty:
	// none.
	Dedupe string
	// DedupeDelay is the time between two requests to that server.
	DedupeDelay time.Duration
	// Info is what the files and the records of one crawl say of each other. Nil: nothing.
	Info *Info
}

// Info is what the sink and the encoders of one crawl know of each other. It is safe for concurrent use.
type Info struct {
	Tags func() []string // of the seeds
	Warn func(error)     // of what costs no page

	id atomic.Pointer[string]
}

// Set says which record describes the file being written.
func (i *Info) Set(id string) {
	if i != nil {
		i.id.Store(&id)
	}
}

// ID returns the record that describes the file being written; empty: it is not known.
func (i *Info) ID() string {
	if i == nil || i.id.Load() == nil {
		return ""
	}
	return *i.id.Load()
}

// Compression says how records are compressed one by one.
type Compression struct {
	// Format is CompressGzip or CompressZstd.
	Format string
	// Level is 1 (fast) up to the most of the compression (small).
	Level int
	// Dictionary is one in the format of Zstandard, for CompressZstd. Nil: none.
	Dictionary []byte
}

// Crawler describes the crawler. Empty fields are left out.
type Crawler struct {
	Software  string // name and version
	UserAgent string // as it is sent
	From      string // as it is sent
	Operator  string // contact of the operator
	Robots    string // policy, such as "obey"
}

// DefaultOptions returns the options of an empty configuration; Dir has no default.
func DefaultOptions() Options {
	return Options{
		Known: slices.Concat(Pages(), References()), Formats: []string{FormatJSONL}, MaxFileBytes: 256 << 20,
		Compress: CompressNone, Queue: 1 << 30, Prefix: "amble", Host: "localhost", DedupeDelay: time.Second,
		Records: Compression{Format: CompressGzip, Level: 1},
	}
}

// Has reports whether a form of output is written.
func (o *Options) Has(format string) bool { return slices.Contains(o.Formats, format) }

// IsNone reports whether nothing is written.
func (o *Options) IsNone() bool { return o.Has(FormatNone) }

// Written returns the formats that are written, in their order.
func (o *Options) Written() (written []Format) {
	for _, f := range o.Known {
		if o.Has(f.Name()) {
			written = append(written, f)
		}
	}
	return written
}

// Needs returns what the formats that are written need of a Visit.
func (o *Options) Needs() (all Needs) {
	for _, f := range o.Known {
		if !o.Has(f.Name()) {
			continue
		}
		n := f.Needs(o)
		all = Needs{all.Links || n.Links, all.LinkTexts || n.LinkTexts, all.Text || n.Text, all.Exchange || n.Exchange}
	}
	return all
}

// IsNamePart reports whether a text can be Options.Prefix or Options.Host.
func IsNamePart(text string) bool { return namePart.MatchString(text) }

var namePart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Validate returns nil, or every value that cannot be used, each with what is allowed. The error wraps [ErrOption].
func (o Options) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %w", ErrOption, fmt.Errorf(format, args...)))
	}
	known := Names(o.Known)
	allowed := strings.Join(known, ", ") + " or " + FormatNone
	if len(o.Formats) == 0 {
		refuse("format is empty, allowed are %s", allowed)
	}
	for i, f := range o.Formats {
		switch {
		case f != FormatNone && !slices.Contains(known, f):
			refuse("format is %q, allowed are %s", f, allowed)
		case f == FormatNone && len(o.Formats) > 1:
			refuse("format %s excludes all others, and there are %d", f, len(o.Formats)-1)
		case slices.Contains(o.Formats[:i], f):
			refuse("format %s is given twice", f)
		}
	}
	if o.Dir == "" && !o.Has(FormatNone) {
		refuse("dir is empty, a directory is needed to write to")
	}
	if o.MaxFileBytes <= 0 {
		refuse("max_file is %d bytes, allowed is 1 or more", o.MaxFileBytes)
	}
	if o.MaxFileAge < 0 {
		refuse("max_age is %v, allowed is 0 or more", o.MaxFileAge)
	}
	if !slices.Contains([]string{CompressNone, CompressGzip, CompressZstd}, o.Compress) {
		refuse("compress is %q, allowed are %s, %s or %s", o.Compress, CompressNone, CompressGzip, CompressZstd)
	}
	for _, f := range o.Written() {
		if err := f.Validate(&o); err != nil {
			refuse("%w", err)
		}
	}
	return errors.Join(errs...)
}

// Load reads the file that the options name, if a format needs it. The error wraps [ErrOption], or is that of the file.
func (o *Options) Load() error {
	if o.DictionaryFile == "" || !o.Needs().Exchange {
		return nil
	}
	dictionary, err := os.ReadFile(o.DictionaryFile)
	if err != nil {
		return fmt.Errorf("archive: read the dictionary of WARC records: %w", err)
	}
	o.Records.Dictionary = dictionary
	for _, f := range o.Written() {
		if err := f.Validate(o); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrOption, o.DictionaryFile, err)
		}
	}
	return nil
}
