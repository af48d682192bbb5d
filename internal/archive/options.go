package archive

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/warc"
)

// The formats of Options.Formats.
const (
	FormatJSONL = "jsonl" // a line for each page
	FormatWARC  = "warc"  // requests and responses, WARC 1.1
	FormatLinks = "links" // a line for each link
	FormatText  = "text"  // a line for each page with its main text
	FormatNone  = "none"  // nothing is written
)

// form is a form of output that is written.
type form int

// The forms, in the order in which they are written.
const (
	formPages form = iota
	formWARC
	formLinks
	formText
	numForms
)

// formats returns the names of the forms.
func formats() []string { return []string{FormatJSONL, FormatWARC, FormatLinks, FormatText} }

// String returns the name in Options.Formats.
func (f form) String() string { return formats()[f] }

// linesPrefix returns the start of the names of files of lines.
func (f form) linesPrefix() string {
	return [numForms]string{formPages: "pages-", formLinks: "links-", formText: "text-"}[f]
}

// ErrOption is wrapped by every error of [Options.Validate].
var ErrOption = errors.New("archive: bad option")

// Options say where and how the output is written.
type Options struct {
	// Dir is the directory of the files. It is made if it does not exist.
	Dir string
	// Formats are the forms of output, written in parallel. FormatNone excludes all others.
	Formats []string
	// MaxFileBytes is the size at which a new file is begun. A line, or the records of one request,
	// are never divided: longer ones get a file of their own.
	MaxFileBytes int64
	// MaxFileAge is the time after which a file is complete. It is checked whenever something is
	// written, and by Writer.Expire. 0: no limit.
	MaxFileAge time.Duration
	// Compress is the compression of files of lines: CompressNone, CompressGzip or CompressZstd.
	Compress string

	// Prefix is the start of the names of WARC files.
	Prefix string
	// Host is the name of this machine in the names of WARC files and in their first record.
	Host string
	// Outlinks says that the metadata records of a WARC file list the links of their page. The
	// caller fills them in.
	Outlinks bool
	// Records is the compression of WARC records. Open and NewEncoder need the same one.
	Records warc.Compression
	// DictionaryFile is the file from which Load reads Records.Dictionary. Empty: none.
	DictionaryFile string
	// Crawler describes the crawler in WARC files.
	Crawler Crawler
}

// Crawler describes the crawler in the first record of a WARC file, its warcinfo. Empty fields are
// left out.
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
		Formats: []string{FormatJSONL}, MaxFileBytes: 256 << 20, Compress: CompressNone,
		Prefix: "amble", Host: "localhost",
		Records: warc.Compression{Format: warc.FormatGzip, Level: 1},
	}
}

// Has reports whether a form of output is written.
func (o *Options) Has(format string) bool { return slices.Contains(o.Formats, format) }

// IsNamePart reports whether a text can be Options.Prefix or Options.Host.
func IsNamePart(text string) bool { return namePart.MatchString(text) }

var namePart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Validate returns nil, or every value that cannot be used, each with what is allowed. The error
// wraps [ErrOption].
func (o Options) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %w", ErrOption, fmt.Errorf(format, args...)))
	}
	allowed := strings.Join(formats(), ", ") + " or " + FormatNone
	if len(o.Formats) == 0 {
		refuse("format is empty, allowed are %s", allowed)
	}
	for i, f := range o.Formats {
		switch {
		case f != FormatNone && !slices.Contains(formats(), f):
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
	if o.Has(FormatWARC) {
		if !IsNamePart(o.Prefix) || !IsNamePart(o.Host) {
			refuse("prefix is %q and the host %q, allowed are letters, digits, dots, dashes and underscores",
				o.Prefix, o.Host)
		}
		if err := o.Records.Validate(); err != nil {
			refuse("records: %w", err)
		}
	}
	return errors.Join(errs...)
}

// Load reads the file that the options name. The error wraps [ErrOption], or is that of the file.
func (o *Options) Load() error {
	if o.DictionaryFile == "" || !o.Has(FormatWARC) {
		return nil
	}
	dictionary, err := os.ReadFile(o.DictionaryFile)
	if err != nil {
		return fmt.Errorf("archive: read the dictionary of WARC records: %w", err)
	}
	o.Records.Dictionary = dictionary
	if err := o.Records.Validate(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrOption, o.DictionaryFile, err)
	}
	return nil
}
