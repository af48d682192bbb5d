package weburl

import (
	"errors"
	"fmt"
	"strings"
)

// The reasons why a text is no URL for amble. Every error of this package matches exactly one with
// [errors.Is].
var (
	// ErrScheme: the URL is not http or https, or it is relative and has no base.
	ErrScheme = errors.New("not an http or https URL")
	// ErrNoHost: the URL names no host, as in "http://" or "https://user@/".
	ErrNoHost = errors.New("URL without a host")
	// ErrTooLong: the canonical form is longer than [MaxLength] bytes, or the text more than three times that.
	ErrTooLong = errors.New("URL too long")
	// ErrSyntax: the host or the port cannot be used.
	ErrSyntax = errors.New("malformed URL")
)

// shownInput is the number of bytes of an invalid text that an error shows.
const shownInput = 120

// parseError holds the invalid text and the reason. It is formatted only on demand, since most
// invalid links (mailto, javascript) are only counted.
type parseError struct {
	input string
	err   error
}

// refuse returns a parseError that does not keep a long input alive.
func refuse(input string, err error) error {
	if len(input) > shownInput {
		input = strings.Clone(input[:shownInput])
	}
	return &parseError{input: input, err: err}
}

func (e *parseError) Error() string { return fmt.Sprintf("parse URL %q: %v", e.input, e.err) }

func (e *parseError) Unwrap() error { return e.err }
