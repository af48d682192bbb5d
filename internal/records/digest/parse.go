//go:build !core

package digest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Err means that a text is no digest that can be checked.
var Err = errors.New("digest: not a SHA-256 digest in hexadecimal digits")

// Parse is the inverse of String.
func Parse(s string) (d Digest, err error) {
	text, found := strings.CutPrefix(s, label)
	sum, err := hex.DecodeString(text)
	if !found || err != nil || len(sum) != len(d) {
		return d, fmt.Errorf("%w: %.80q", Err, s)
	}
	return Digest(sum), nil
}
