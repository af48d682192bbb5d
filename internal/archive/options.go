package archive

import (
	"errors"
	"fmt"
	"slices"
)

// The formats of Options.Formats.
const (
	FormatJSONL = "jsonl" // JSON lines, docs/OUTPUT.md
	FormatNone  = "none"  // nothing is written
	FormatWARC  = "warc"  // known, but not written by this version
)

// ErrOption is wrapped by every error of [Options.Validate].
var ErrOption = errors.New("archive: bad option")

// Options say what is written where.
type Options struct {
	// Dir is the directory of the files. It is made where it does not exist.
	Dir string
	// Formats are the forms of output, written side by side; FormatNone stands alone.
	Formats []string
	// MaxFileBytes is the size at which a new file is begun. A line is never divided: one that is longer gets a file of its own.
	MaxFileBytes int64
}

// DefaultOptions are what an empty configuration means; Dir has no default.
func DefaultOptions() Options {
	return Options{Formats: []string{FormatJSONL}, MaxFileBytes: 256 << 20}
}

// Validate returns nil, or every value that cannot be used, each with what is allowed. The error
// wraps [ErrOption].
func (o Options) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s", ErrOption, fmt.Sprintf(format, args...)))
	}
	if len(o.Formats) == 0 {
		refuse("format is empty, allowed are %s or %s", FormatJSONL, FormatNone)
	}
	for i, f := range o.Formats {
		switch {
		case f == FormatWARC:
			refuse("format %s cannot be written by this version, allowed are %s or %s", f, FormatJSONL, FormatNone)
		case f != FormatJSONL && f != FormatNone:
			refuse("format is %q, allowed are %s or %s", f, FormatJSONL, FormatNone)
		case f == FormatNone && len(o.Formats) > 1:
			refuse("format %s excludes all others, of which there are %d", f, len(o.Formats)-1)
		case slices.Contains(o.Formats[:i], f):
			refuse("format %s is given twice", f)
		}
	}
	if o.Dir == "" && slices.Contains(o.Formats, FormatJSONL) {
		refuse("dir is empty, a directory is needed to write to")
	}
	if o.MaxFileBytes <= 0 {
		refuse("max_file is %d bytes, allowed is 1 or more", o.MaxFileBytes)
	}
	return errors.Join(errs...)
}
