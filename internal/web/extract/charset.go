package extract

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/saintfish/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

const (
	// prescanBytes is the length of the start of a document that is searched for its own
	// declaration (HTML, section 13.2.3.2).
	prescanBytes = 1024
	// sampleBytes is the length of the sample of a document without a declaration.
	sampleBytes = 16 << 10
	// minConfidence is the least confidence, of 100, in a guess.
	minConfidence = 20
)

// Charset is the name of the encoding in which a document has the queries of its references; empty: UTF-8.
type Charset string

var lacking = regexp.MustCompile(`&#([0-9]+);`) // what an encoder makes of a character that it does not have

// Reference returns a reference with its query in the encoding (URL Standard, "percent-encode after encoding"), so that
// [weburl.URL.Resolve] makes the URL that browsers request.
func (c Charset) Reference(ref string) string {
	if c == "" || strings.HasPrefix(string(c), "utf-16") {
		return ref
	}
	before, fragment, _ := strings.Cut(ref, "#")
	path, query, _ := strings.Cut(before, "?")
	e, _ := charset.Lookup(string(c))
	if e == nil || isPlainASCII([]byte(query)) {
		return ref
	}
	query, _ = e.NewEncoder().String(query)
	query = lacking.ReplaceAllString(query, "%26%23$1%3B")
	return path + "?" + strings.ReplaceAll(query, "#", "%23") + "#" + fragment
}

// decoded returns body in UTF-8, body itself if it is in UTF-8 already, and the encoding for its queries. The encoding
// is that of the byte order mark, else of the Content-Type, else of the document's own declaration, else a guess.
func decoded(body []byte, contentType string) ([]byte, Charset) {
	if rest, ok := bytes.CutPrefix(body, []byte("\xef\xbb\xbf")); ok {
		return validUTF8(rest), ""
	}
	valid := utf8.Valid(body)
	e, name := declared(body, contentType)
	if e == nil && !valid {
		e, name = guess(body)
	}
	switch {
	case e == nil || name == "utf-8":
		if valid {
			return body, ""
		}
		return validUTF8(body), ""
	case valid && isPlainASCII(body) && name != "utf-16be" && name != "utf-16le":
		return body, Charset(name) // a reference of characters may have others
	}
	text, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return validUTF8(body), ""
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), Charset(name) // else the mark of UTF-16 would begin the body
}

// validUTF8 replaces invalid UTF-8.
func validUTF8(body []byte) []byte { return bytes.ToValidUTF8(body, []byte("\ufffd")) }

// announced returns the encoding of the byte order mark of UTF-16, or of the Content-Type. A nil encoding means none.
func announced(head []byte, contentType string) (encoding.Encoding, string) {
	if bytes.HasPrefix(head, []byte("\xfe\xff")) || bytes.HasPrefix(head, []byte("\xff\xfe")) {
		e, name, _ := charset.DetermineEncoding(head, "")
		return e, name
	}
	if _, params, err := mime.ParseMediaType(contentType); err == nil {
		return charset.Lookup(params["charset"])
	}
	return nil, ""
}

// declared returns the encoding that the response or the document declares. Nil: none.
func declared(body []byte, contentType string) (encoding.Encoding, string) {
	head := body[:min(len(body), prescanBytes)]
	if e, name := announced(head, contentType); e != nil {
		return e, name
	}
	if !mentionsCharset(head) {
		return nil, ""
	}
	e, name, _ := charset.DetermineEncoding(head, "")
	if e == encoding.Encoding(charmap.Windows1252) { // what the library takes without a declaration
		return nil, ""
	}
	return e, name
}

// mentionsCharset reports whether there may be a declaration: every declaration contains this word.
func mentionsCharset(head []byte) bool {
	const word = "charset"
	for {
		i := bytes.IndexAny(head, "cC")
		if i < 0 || len(head)-i < len(word) {
			return false
		}
		if bytes.EqualFold(head[i:i+len(word)], []byte(word)) {
			return true
		}
		head = head[i+1:]
	}
}

// guess returns the name of the encoding of a document that is not UTF-8 and declares none.
func guess(body []byte) (encoding.Encoding, string) {
	first := bytes.IndexFunc(body, func(r rune) bool { return r >= utf8.RuneSelf })
	start := max(0, first-prescanBytes)
	if cut := body[:len(body)-partialRune(body)]; utf8.Valid(cut) {
		return nil, "" // UTF-8, cut within a character
	}
	sample := body[start:min(len(body), start+sampleBytes)]
	if best, err := chardet.NewHtmlDetector().DetectBest(sample); err == nil && best.Confidence >= minConfidence {
		label := strings.Replace(best.Charset, "GB-18030", "gb18030", 1) // its only name that is no label
		if e, name := charset.Lookup(label); e != nil {
			return e, name
		}
	}
	return charset.Lookup("windows-1252")
}

// partialRune returns the number of bytes at the end of body that begin a character but do not complete it.
func partialRune(body []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(body); i++ {
		if b := body[len(body)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(body[len(body)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

// isPlainASCII reports whether body is the same in every encoding that a web page can have, except
// UTF-16: ISO-2022-JP is ASCII with escapes.
func isPlainASCII(body []byte) bool {
	for _, b := range body {
		if b >= utf8.RuneSelf || b == 0x1b {
			return false
		}
	}
	return true
}

// toUTF8Reader decodes a list as it is read. The encoding is that of the byte order mark, else of the Content-Type,
// else of the XML declaration, else UTF-8, in which invalid bytes stay as they are.
func toUTF8Reader(r io.Reader, contentType string) io.Reader {
	in := bufio.NewReaderSize(r, 4096)
	head, _ := in.Peek(prescanBytes)
	e, name := listEncoding(head, contentType)
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
		return in
	}
	if e == nil || name == "utf-8" {
		return in
	}
	return transform.NewReader(in, e.NewDecoder())
}

func listEncoding(head []byte, contentType string) (encoding.Encoding, string) {
	if e, name := announced(head, contentType); e != nil {
		return e, name
	}
	declaration, _, found := bytes.Cut(head, []byte("?>"))
	if !found || !bytes.HasPrefix(declaration, []byte("<?xml")) {
		return nil, ""
	}
	_, value, _ := strings.Cut(string(declaration), "encoding")
	value = strings.TrimLeft(value, space+"=")
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return nil, ""
	}
	label, _, _ := strings.Cut(value[1:], value[:1])
	if e, name := charset.Lookup(label); e != nil && name != "utf-16le" && name != "utf-16be" {
		return e, name // a readable declaration is not in UTF-16, whatever it says
	}
	return nil, ""
}
