//go:build !core

package fetch

import (
	"io"
	"net/http"
)

// Decode undoes the content encodings that a header names, for a body that was stored as it came.
// release frees the decoders. The body is not bounded: the reader decides how much to read.
func Decode(h http.Header, body io.Reader) (_ io.Reader, release func(), err error) {
	list, err := encodings(h)
	if err != nil {
		return nil, nil, err
	}
	return undo(body, list, zstdWindow, nil, &bench{})
}
