package fetch

import (
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// HostPattern names hosts: "example.com" names that host, "*.example.com" every host below it, and
// "*" all. The zero value names none.
type HostPattern string

// ParseHostPattern reads a pattern as people write it: in any case, with
// characters of any script.
func ParseHostPattern(text string) (HostPattern, error) {
	if text == "*" {
		return "*", nil
	}
	name, below := strings.CutPrefix(text, "*.")
	u, err := weburl.Parse("http://" + name + "/")
	if err != nil || u.RequestURI() != "/" || u.Port() != 80 ||
		strings.ContainsAny(name, "*@:/?#") && !strings.HasPrefix(name, "[") {
		return "", fmt.Errorf("%q is no host: want example.com, *.example.com or *", text)
	}
	if below {
		return HostPattern("*." + u.Host()), nil
	}
	return HostPattern(u.Host()), nil
}

// Match reports whether the pattern names host, which is in canonical form.
func (p HostPattern) Match(host string) bool {
	if p == "*" {
		return true
	}
	if below, ok := strings.CutPrefix(string(p), "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return string(p) == host
}
