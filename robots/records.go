package robots

import (
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Sitemaps returns the sitemaps that the file names, resolved against base, the URL of the file.
// Each occurs once, in file order, and only if it is an http or https URL. Sitemaps belong to no
// group.
func (f *File) Sitemaps(base string) []string {
	s := sitemaps{base: base}
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k == keySitemap {
			s.add(r.Value)
		}
	}
	return s.urls
}

// sitemaps collects the sitemaps that a file names.
type sitemaps struct {
	base string // the URL of the file
	urls []string
	seen map[string]bool
}

// add adds the value of a record.
func (s *sitemaps) add(value string) {
	if s.seen == nil {
		s.seen = make(map[string]bool)
	}
	for _, ref := range sitemapRefs(value) {
		if u, ok := resolve(s.base, ref); ok && !s.seen[u] {
			s.seen[u] = true
			s.urls = append(s.urls, u)
		}
	}
}

// sitemapField returns key and value of a sitemap record. In "Sitemap https://a/b" the first colon
// is that of the URL.
func sitemapField(word, value []byte) (key, text string) {
	if i := indexBlank(word); i > 0 {
		if k, _ := keyOf(word[:i]); k == keySitemap {
			return string(word[:i]), string(trim(word[i:])) + ":" + string(value)
		}
	}
	return string(word), string(value)
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

// resolve returns ref, found at base, as an http or https URL in canonical form. An absolute ref
// needs no base.
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

// Hosts returns the values of the Host records: the names that the site prefers. They are
// information only.
func (f *File) Hosts() []string {
	var all []string
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k == keyHost && r.Value != "" {
			all = append(all, r.Value)
		}
	}
	return all
}

// CleanParam is a Clean-param record: query parameters that do not change the page, below a path.
// It never changes the identity of a URL.
type CleanParam struct {
	Line   int
	Params []string
	Path   string // "" means everywhere
}

// CleanParams returns the Clean-param records. They are information only.
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
