package fetch

import (
	"io"
	"net/http"
)

// Decode undoes the content encodings that a header names, of a body that was
// stored as it came. The returned release gives back what that takes. The body is not
// bounded: whoever reads it decides how much.
func Decode(h http.Header, body io.Reader) (_ io.Reader, release func(), err error) {
	list, err := encodings(h)
	if err != nil {
		return nil, nil, err
	}
	return undo(body, list, zstdWindow, nil, &bench{})
}
