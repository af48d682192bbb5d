package robots

import (
	"strings"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Sitemaps returns the sitemaps that the file names, resolved against base, the URL of the file, each once, in file
// order. Only http and https URLs are among them. Sitemaps belong to no group.
func (f *File) Sitemaps(base string) []string {
	var all []string
	seen := map[string]bool{}
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k != keySitemap {
			continue
		}
		for _, ref := range sitemapRefs(r.Value) {
			if u, ok := resolve(base, ref); ok && !seen[u] {
				seen[u] = true
				all = append(all, u)
			}
		}
	}
	return all
}

// sitemapRefs returns the URLs of one sitemap line: several where each word of it is one.
func sitemapRefs(value string) []string {
	words := strings.Fields(value)
	for _, w := range words {
		w = strings.ToLower(w)
		if !strings.HasPrefix(w, "http://") && !strings.HasPrefix(w, "https://") {
			words = nil
			break
		}
	}
	if words == nil && value != "" {
		return []string{value}
	}
	return words
}

// resolve returns the http or https URL that ref, found at base, leads to, in canonical form. An absolute one needs no
// base.
func resolve(base, ref string) (string, bool) {
	u, err := weburl.Parse(ref)
	if err != nil {
		var b weburl.URL
		if b, err = weburl.Parse(base); err == nil {
			u, err = b.Resolve(ref)
		}
	}
	if err != nil {
		return "", false
	}
	return u.String(), true
}

// Hosts returns the values of the Host records: names that the site would rather be known by. Data only.
func (f *File) Hosts() []string {
	var all []string
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k == keyHost && r.Value != "" {
			all = append(all, r.Value)
		}
	}
	return all
}

// CleanParam is a Clean-param record: query parameters that do not change the page, below a path. It never changes what
// a URL is.
type CleanParam struct {
	Line   int
	Params []string
	Path   string // "" means everywhere
}

// CleanParams returns the Clean-param records. Data only.
func (f *File) CleanParams() []CleanParam {
	var all []CleanParam
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k != keyCleanParam {
			continue
		}
		params, path, _ := strings.Cut(r.Value, " ")
		if params != "" {
			all = append(all, CleanParam{r.Line, strings.Split(params, "&"), strings.TrimSpace(path)})
		}
	}
	return all
}
