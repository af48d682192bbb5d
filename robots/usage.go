package robots

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// UsageKind is the kind of record that states a preference.
type UsageKind uint8

const (
	ContentUsage  UsageKind = iota // a rule of draft-ietf-aipref-attach, section 3
	ContentSignal                  // an extension of contentsignals.org
)

// String returns the key of the record.
func (k UsageKind) String() string {
	if k == ContentSignal {
		return "Content-Signal"
	}
	return "Content-Usage"
}

// Usage is what a robots.txt says about the use of some content after it was fetched. It changes no
// verdict.
type Usage struct {
	Kind  UsageKind
	Line  int
	Path  string // the pattern of the paths that it is about, as written; "": all paths
	Value string // the preferences, as written, such as "train-ai=n"
}

// String returns the record as a line of a file.
func (u Usage) String() string {
	if u.Path == "" {
		return u.Kind.String() + ": " + u.Value
	}
	return u.Kind.String() + ": " + u.Path + " " + u.Value
}

// newUsage divides the value of a record. A path ends at the first blank, and a value that does not
// start with a slash has none (draft-ietf-aipref-attach, section 3.2).
func newUsage(kind UsageKind, line int, value []byte) Usage {
	u := Usage{Kind: kind, Line: line, Value: string(value)}
	if strings.HasPrefix(u.Value, "/") {
		path, rest := u.Value, ""
		if i := indexBlank(value); i >= 0 {
			path, rest = u.Value[:i], u.Value[i:]
		}
		u.Path, u.Value = path, strings.TrimSpace(rest)
	}
	return u
}

// maxUsages bounds the preferences that count of one file, and maxUsage the octets of one. What is
// beyond has no effect: then the preference of the file is unknown.
const maxUsages, maxUsage = 1000, 1024

// statement is a Usage that is ready to be matched.
type statement struct {
	Usage
	pattern Pattern // of Path
}

// statements prepares preferences for matching: the longest pattern first, in file order.
func statements(found []Usage) []statement {
	if len(found) == 0 {
		return nil
	}
	list := make([]statement, len(found))
	for i, u := range found {
		list[i] = statement{u, NewPattern(u.Path)}
	}
	slices.SortStableFunc(list, func(a, b statement) int {
		return cmp.Compare(len(b.pattern.normal), len(a.pattern.normal))
	})
	return list
}

// Usage returns what the file says about the use of a URL, given as request URI. Of each kind, the
// records with the longest pattern that matches count, all of them where several are of that length
// (draft-ietf-aipref-attach, section 3.1). A URL that may not be fetched has none, which is for the
// caller to know. It takes time in proportion to the number of records, at most 1,000, and the
// length of the URL.
func (r *Rules) Usage(requestURI string) []Usage {
	if len(r.usage) == 0 {
		return nil
	}
	uri := appendURI(make([]byte, 0, len(requestURI)+len(requestURI)/8+1), requestURI)
	var found []Usage
	longest := [...]int{ContentUsage: -1, ContentSignal: -1}
	for _, s := range r.usage {
		if n := len(s.pattern.normal); n >= longest[s.Kind] && s.pattern.matches(uri) {
			longest[s.Kind] = n
			found = append(found, s.Usage)
		}
	}
	return found
}

// HasUsage reports whether the file says anything about the use of any URL.
func (r *Rules) HasUsage() bool { return len(r.usage) > 0 }

// maxLicenses bounds the licenses that count of one file.
const maxLicenses = 8

// addLicense adds the value of a License record, if it is the absolute URL of a web page.
func addLicense(urls []string, value string) []string {
	u, ok := resolve("", value)
	if !ok || len(value) > maxValidator || len(urls) >= maxLicenses || slices.Contains(urls, u) {
		return urls
	}
	return append(urls, u)
}

// Licenses returns the URLs in the License records of the group, or if it has none, of those that stand in no group:
// before the first one, behind an empty line, or behind a record of the whole file. They name the terms for the content
// of the site (Really Simple Licensing 1.0). Nobody may change the list.
func (r *Rules) Licenses() []string { return r.license }

// licenseSize returns the bytes that licenses retain.
func licenseSize(urls []string) int {
	n := cap(urls) * int(unsafe.Sizeof(""))
	for _, u := range urls {
		n += len(u)
	}
	return n
}

// usageSize returns the bytes that statements retain.
func usageSize(list []statement) int {
	n := cap(list) * int(unsafe.Sizeof(statement{}))
	for _, s := range list {
		n += len(s.Path) + len(s.Value) + len(s.pattern.normal)
	}
	return n
}
