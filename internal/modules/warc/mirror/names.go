//go:build !core

package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"regexp"
	"strings"
)

const (
	maxSegment = 80  // bytes of a part of a path
	maxPath    = 180 // bytes of a path
)

// reserved are the names that Windows takes for devices, with any extension.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|com\d|lpt\d)(\.|$)`)

// extensions are those of files whose URL has none.
var extensions = map[string]string{
	"text/css": "css", "text/javascript": "js", "application/javascript": "js", "application/json": "json",
	"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif",
	"image/svg+xml": "svg", "image/x-icon": "ico", "image/vnd.microsoft.icon": "ico", "font/woff2": "woff2",
	"font/woff": "woff", "application/pdf": "pdf", "text/plain": "txt", "application/xml": "xml", "text/xml": "xml",
	"video/mp4": "mp4", "audio/mpeg": "mp3",
}

// plainExtension is an extension that a file keeps.
var plainExtension = regexp.MustCompile(`^[a-z0-9]{1,8}$`)

// nameOf returns the path of the file of a URL, with slashes. A page at /a is a.htm, at /a/ a/index.html; so that
// nothing else has these names, other URLs that would get one have a part of their digest in the name, behind an @,
// which no other name has.
func nameOf(text, mime string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return path.Join("@", "@"+sum(text)+".bin")
	}
	host, plain := clean(strings.ReplaceAll(u.Hostname(), ":", "-"))
	top := host
	if u.Scheme != "https" || u.Port() != "" {
		top += "@" + u.Scheme + u.Port()
	}
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	last := len(parts) - 1
	names := []string{top}
	for _, part := range parts[:last] {
		name, isPlain := clean(part)
		if strings.Contains(name, ".") {
			name += "_" // a file has a dot, a directory none without this behind it
		}
		names, plain = append(names, name), plain && isPlain
	}
	base, extension, isPlain := fileName(parts[last], mime)
	plain = plain && isPlain && !strings.Contains(text, "?")
	name := path.Join(append(names, base+"."+extension)...)
	switch {
	case len(name) > maxPath:
		return path.Join(top, "@"+sum(text)+"."+extension)
	case !plain:
		return path.Join(append(names, base+"@"+sum(text)+"."+extension)...)
	}
	return name
}

// fileName returns the name of a file for the last part of a path. It is not plain if another URL may have it too.
func fileName(part, mime string) (base, extension string, plain bool) {
	base, plain = clean(part)
	dot := strings.LastIndexByte(base, '.')
	if dot > 0 && plainExtension.MatchString(base[dot+1:]) {
		base, extension = base[:dot], base[dot+1:]
	}
	isPage := isHTML(mime)
	switch {
	case part == "" && isPage:
		return "index", "html", true
	case isPage && extension == "html":
		return base, extension, plain && base != "index"
	case isPage && extension == "": // a.htm; also of a.htm itself, which is not plain
		return base, "htm", plain
	case isPage && extension == "htm":
		return base, extension, false
	case isPage:
		return base + "." + extension, "htm", plain
	case extension == "", extension == "html", extension == "htm":
		if extension = extensions[mime]; extension == "" {
			extension = "bin"
		}
		return base, extension, false
	}
	return base, extension, plain
}

// clean returns a part of a path as a name. It is plain if no other part is cleaned to the same, in any letter case.
func clean(part string) (name string, plain bool) {
	mapped := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return '_'
	}, part)
	if len(mapped) > maxSegment {
		mapped = mapped[:maxSegment]
	}
	name = strings.TrimRight(mapped, ".")
	if name == "" || reserved.MatchString(name) || strings.HasPrefix(name, ".") {
		name = "_" + name
	}
	return name, name == part
}

func sum(text string) string {
	d := sha256.Sum256([]byte(text))
	return hex.EncodeToString(d[:6])
}

func isHTML(mime string) bool { return mime == "text/html" || mime == "application/xhtml+xml" }
