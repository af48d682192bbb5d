package extract

import (
	"bytes"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// ListKind is the kind of a list of URLs.
type ListKind uint8

// The kinds of list.
const (
	NotAList    ListKind = iota
	ListSitemap          // <urlset> of sitemaps.org
	ListIndex            // <sitemapindex>
	ListText             // a URL on each line
	ListRSS              // RSS 0.9 to 2.0, including RSS 1.0 (RDF)
	ListAtom             // RFC 4287
	ListJSON             // JSON Feed
)

// String returns the name of the kind in the output.
func (k ListKind) String() string {
	return [...]string{"", "sitemap", "sitemap index", "text sitemap", "rss", "atom", "json feed"}[k]
}

// IsFeed reports whether the list is a feed rather than a sitemap.
func (k ListKind) IsFeed() bool { return k >= ListRSS }

// SniffBytes is how many bytes of the start of a file SniffList can use.
const SniffBytes = 4096

var gzipMagic = []byte{0x1f, 0x8b}

// SniffList recognises a sitemap or feed by the first bytes of its file, which may be compressed
// with gzip. announced means that the file was announced as a sitemap. Only then a plain list of
// URLs is recognised, and only then a sitemap may have something before it.
func SniffList(contentType string, head []byte, announced bool) ListKind {
	head = head[:min(len(head), SniffBytes)]
	if bytes.HasPrefix(head, gzipMagic) {
		head = unzipHead(head)
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		head = bytes.ReplaceAll(head[2:], []byte{0}, nil) // UTF-16: this is enough to read names
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), space)
	switch {
	case len(text) == 0:
		return NotAList
	case text[0] == '<':
		if kind := listOfRoot(rootName(text), head); kind != NotAList {
			return kind
		}
	case text[0] == '{' && bytes.Contains(head, []byte("jsonfeed.org/version/")) &&
		strings.Contains(mediaType(contentType), "json"):
		return ListJSON
	case announced && startsWithURL(text):
		return ListText
	}
	if announced {
		return listWithin(head)
	}
	return NotAList
}

// unzipHead decompresses the start of a gzip file.
func unzipHead(head []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return nil
	}
	out := make([]byte, SniffBytes)
	n, _ := io.ReadFull(z, out) // it ends early, as expected
	return out[:n]
}

// rootName returns the name of the first element, without its prefix and in lower case.
func rootName(text []byte) string {
	for {
		text = bytes.TrimLeft(text, space)
		end := []byte(">")
		switch {
		case len(text) < 2 || text[0] != '<':
			return ""
		case bytes.HasPrefix(text, []byte("<!--")):
			end = []byte("-->")
		case text[1] != '?' && text[1] != '!':
			name := text[1:]
			if i := bytes.IndexAny(name, space+"/>"); i >= 0 {
				name = name[:i]
			}
			return localName(string(bytes.ToLower(name)))
		}
		_, rest, found := bytes.Cut(text, end)
		if !found {
			return ""
		}
		text = rest
	}
}

// localName returns an XML name without its prefix.
func localName(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

func listOfRoot(name string, head []byte) ListKind {
	switch name {
	case "urlset":
		return ListSitemap
	case "sitemapindex":
		return ListIndex
	case "rss":
		return ListRSS
	case "rdf":
		if bytes.Contains(head, []byte("purl.org/rss/")) {
			return ListRSS
		}
	case "feed":
		if bytes.Contains(head, []byte("w3.org/2005/Atom")) || bytes.Contains(head, []byte("purl.org/atom")) {
			return ListAtom
		}
	}
	return NotAList
}

// listWithin searches for a sitemap behind something else, such as a message of the program that wrote it.
func listWithin(head []byte) ListKind {
	switch {
	case bytes.Contains(head, []byte("<urlset")):
		return ListSitemap
	case bytes.Contains(head, []byte("<sitemapindex")):
		return ListIndex
	}
	return NotAList
}

// startsWithURL reports whether the first line is a URL and nothing else.
func startsWithURL(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimRight(line, space)
	lower := bytes.ToLower(line[:min(len(line), len("https://"))])
	return (bytes.HasPrefix(lower, []byte("http://")) || bytes.HasPrefix(lower, []byte("https://"))) &&
		!bytes.ContainsAny(line, space)
}
