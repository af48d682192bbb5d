//go:build !core

package extract

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// NewReader returns a reader of a document in UTF-8, with its mark if it has one, and the encoding for its queries.
// Both depend on the Content-Type and on the start of the document, as those of [Text] do on all of it.
func NewReader(r io.Reader, contentType string) (io.Reader, Charset) {
	in := bufio.NewReaderSize(r, prescanBytes+sampleBytes)
	head, _ := in.Peek(prescanBytes + sampleBytes)
	e, name := declared(head, contentType)
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		e = nil
	} else if e == nil && !utf8.Valid(head) {
		e, name = guess(head)
	}
	if e == nil || name == "utf-8" {
		return in, ""
	}
	return transform.NewReader(in, e.NewDecoder()), Charset(name)
}
