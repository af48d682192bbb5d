package archive

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The suffixes that the name of a file can have.
const (
	SuffixOpen = ".open" // unfinished, or not yet committed completely
	// SuffixUnmarked marks a file that was set aside; a second file of the same name has ".unmarked.2".
	SuffixUnmarked = ".unmarked"
)

// anySuffix matches the suffix of a file's name.
var anySuffix = regexp.MustCompile(`(?:\.open|\.unmarked(?:\.[1-9]\d*)?)?$`)

// IsAside reports whether a suffix is that of a file that was set aside.
func IsAside(suffix string) bool { return strings.HasPrefix(suffix, SuffixUnmarked) }

// Naming is how the files of one series are named.
type Naming struct {
	// Make returns the name of a new file when it is complete, as marks name it.
	Make func(serial int, now time.Time) string
	// Pattern matches every name that Make can return, with any settings. Its group is the serial number.
	Pattern *regexp.Regexp
}

// numbered returns the names of files of lines: "pages-000001.jsonl", followed by the extension of its compression.
func numbered(prefix, extension, packed string) Naming {
	return Naming{
		Make: func(serial int, _ time.Time) string { return prefix + SerialText(serial) + extension + packed },
		Pattern: regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `(\d{6,19})` + regexp.QuoteMeta(extension) +
			`(?:\.gz|\.zst)?$`),
	}
}

// SerialText returns a serial number as names have it.
func SerialText(serial int) string { return fmt.Sprintf("%06d", serial) }

// Parse returns the serial number of a file of the series, its name when complete, and its suffix.
// Other files are not ok.
func (n Naming) Parse(file string) (serial int, name, suffix string, ok bool) {
	at := anySuffix.FindStringIndex(file)[0]
	name, suffix = file[:at], file[at:]
	match := n.Pattern.FindStringSubmatch(name)
	if match == nil {
		return 0, "", "", false
	}
	serial, err := strconv.Atoi(match[1])
	if err != nil || serial < 1 || SerialText(serial) != match[1] {
		return 0, "", "", false
	}
	return serial, name, suffix, true
}
