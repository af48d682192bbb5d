package fetch

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// typeError is a response of a media type that is not wanted.
type typeError struct{ media string }

func (e *typeError) Error() string { return fmt.Sprintf("content type %q is not wanted", e.media) }

// ValidMediaRange reports whether text is a media range without parameters, such
// as text/html, text/* or */*.
func ValidMediaRange(text string) bool {
	kind, sub, ok := strings.Cut(text, "/")
	if !ok || kind == "" || sub == "" || kind == "*" && sub != "*" {
		return false
	}
	media, params, err := mime.ParseMediaType(text)
	return err == nil && len(params) == 0 && media == strings.ToLower(text)
}

// checkType refuses a response with content of a type that is not wanted.
func (c *Client) checkType(r Request, resp *http.Response) error {
	if r.AnyType {
		return nil
	}
	return c.o.CheckType(resp.StatusCode, resp.Header)
}

// CheckType returns an error for a response with content of a type that ContentTypes leaves out. A
// response without a type is wanted: it may be anything. Any goroutine may call it.
func (o *Options) CheckType(status int, header http.Header) error {
	if len(o.ContentTypes) == 0 || status/100 != 2 || status == http.StatusNoContent {
		return nil
	}
	media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if !strings.Contains(media, "/") {
		return nil
	}
	for _, want := range o.ContentTypes {
		if matchesRange(strings.ToLower(want), media) {
			return nil
		}
	}
	return &typeError{media: media[:min(len(media), 100)]}
}

// matchesRange reports whether a media type is in a range (RFC 9110, section
// 12.5.1), both in lower case.
func matchesRange(want, media string) bool {
	if want == "*/*" {
		return true
	}
	if kind, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(media, kind)
	}
	return want == media
}
