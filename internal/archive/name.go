package archive

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The suffixes a file can have behind its name.
const (
	suffixOpen = ".open" // being written, or not yet committed as a whole
	// suffixUnmarked: set aside; a second file of the same name has ".unmarked.2".
	suffixUnmarked = ".unmarked"
)

// anySuffix takes the suffix off a file's name.
var anySuffix = regexp.MustCompile(`(?:\.open|\.unmarked(?:\.[1-9]\d*)?)?$`)

// isAside reports whether a suffix is that of a file that was set aside.
func isAside(suffix string) bool { return strings.HasPrefix(suffix, suffixUnmarked) }

// naming is how the files of one series are called.
type naming struct {
	// make names a new file as it is called when complete, and as marks call it.
	make func(serial int, now time.Time) string
	// pattern matches every name that make can have given, with any settings. Its group is the serial number.
	pattern *regexp.Regexp
}

// The name of a numbered series: "pages-000001.jsonl", and how it is packed behind it.
func numbered(prefix, extension string) naming {
	return naming{
		make:    func(serial int, _ time.Time) string { return prefix + serialText(serial) + extension },
		pattern: regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `(\d{6,19})\.jsonl(?:\.gz|\.zst)?$`),
	}
}

// The name of a WARC file: "amble-20261120121415-000001-host.warc.gz", as archives have it: prefix, time, serial number, machine.
func dated(prefix, host string) naming {
	return naming{
		make: func(serial int, now time.Time) string {
			return prefix + "-" + now.UTC().Format("20060102150405") + "-" + serialText(serial) + "-" + host + warcExtension
		},
		pattern: regexp.MustCompile(`^[^/]+-\d{14}-(\d{6,19})-[^/]*` + regexp.QuoteMeta(warcExtension) + `$`),
	}
}

const warcExtension = ".warc.gz"

func serialText(serial int) string { return fmt.Sprintf("%06d", serial) }

// parse returns the serial number of a file of the series, its name when complete, and its suffix. Other files are not ok.
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
