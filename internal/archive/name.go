package archive

import (
	"fmt"
	"strconv"
	"strings"
)

// The suffixes a file can have behind its name.
const (
	suffixOpen     = ".open"     // being written, or not yet committed as a whole
	suffixUnmarked = ".unmarked" // set aside: the crawl knows nothing of it
)

// naming is how the files of one series are called: prefix, serial number of six digits or more, extension.
type naming struct{ prefix, extension string }

// name is that of the file with the serial number, as it is when complete and as marks give it.
func (n naming) name(serial int) string {
	return fmt.Sprintf("%s%06d%s", n.prefix, serial, n.extension)
}

// parse returns the serial number of a file of the series, and its suffix. Other files are not ok.
func (n naming) parse(name string) (serial int, suffix string, ok bool) {
	for _, suffix = range [...]string{suffixOpen, suffixUnmarked, ""} {
		if base, found := strings.CutSuffix(name, suffix); found {
			name = base
			break
		}
	}
	digits, found := strings.CutPrefix(name, n.prefix)
	if !found {
		return 0, "", false
	}
	digits, found = strings.CutSuffix(digits, n.extension)
	if !found {
		return 0, "", false
	}
	serial, err := strconv.Atoi(digits)
	if err != nil || serial < 1 || n.name(serial) != name {
		return 0, "", false
	}
	return serial, suffix, true
}
