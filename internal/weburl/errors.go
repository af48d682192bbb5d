package weburl

import (
	"errors"
	"fmt"
	"strings"
)

// Why a text is no URL for amble. Every error of this package matches exactly one of these with [errors.Is].
var (
	// ErrScheme: the URL is not http or https, or it is relative and there was nothing to resolve it against.
	ErrScheme = errors.New("not an http or https URL")
	// ErrNoHost: the URL names no host, as in "http://" or "https://user@/".
	ErrNoHost = errors.New("URL without a host")
	// ErrTooLong: the canonical form is longer than [MaxLength] bytes, or the text more than three times that.
	ErrTooLong = errors.New("URL too long")
	// ErrSyntax: the host or the port is not one that can be asked.
	ErrSyntax = errors.New("malformed URL")
)

// shownInput is how many bytes of a refused text an error repeats.
const shownInput = 120

// parseError says which text was refused and why. It is put into words only when somebody reads it, since most
// refused links (mailto, javascript) are merely counted.
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
