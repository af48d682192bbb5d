package robots

import (
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

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

// LineText returns the line of a robots.txt body with the given number, such as Verdict.Line,
// without white space at its ends, or "" if there is none.
func LineText(body []byte, line int) string {
	text, _, _ := readable(body)
	return lineText(text, line)
}

func lineText(text []byte, number int) string {
	l := newLines(text)
	for {
		line, ok := l.next()
		if !ok {
			return ""
		}
		if l.number == number {
			return string(trim(line))
		}
	}
}
