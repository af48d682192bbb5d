//go:build !core

package weburl

import (
	"bytes"
	"strings"

	"golang.org/x/net/idna"
)

// Names is a set of host names: one name, or a domain with all names below it. The zero value is empty.
type Names struct {
	Name  string // as [URL.Host] returns it
	Below bool   // the names below it belong to the set
}

// Has reports whether a host, as [URL.Host] returns it, is in the set.
func (n Names) Has(host string) bool {
	if n.Name == "" || !strings.HasSuffix(host, n.Name) {
		return false
	}
	rest := len(host) - len(n.Name)
	return rest == 0 || n.Below && host[rest-1] == '.'
}

// HasURL reports whether the host of a URL is in the set. A text that is no URL is not.
func (n Names) HasURL(text string) bool {
	u, err := Parse(text)
	return err == nil && n.Has(u.Host())
}

// In reports whether a name of the set occurs in a text, in any letter case, as a whole name and not
// as a part of another one. A name with characters beyond ASCII counts in both of its forms.
func (n Names) In(text []byte) bool { return n.Count(text) > 0 }

// Count returns how often names of the set occur in a text: see In.
func (n Names) Count(text []byte) (count int) {
	if n.Name == "" {
		return 0
	}
	text = bytes.ToLower(text)
	for _, form := range n.forms() {
		for at := 0; ; at++ {
			next := bytes.Index(text[at:], form)
			if next < 0 {
				break
			}
			at += next
			if n.begins(text, at) && !continues(text[at+len(form):]) {
				count++
			}
		}
	}
	return count
}

// forms returns the ways in which texts write the name.
func (n Names) forms() [][]byte {
	forms := [][]byte{[]byte(n.Name)}
	if unicode, err := idna.ToUnicode(n.Name); err == nil && unicode != n.Name {
		forms = append(forms, []byte(unicode))
	}
	return forms
}

// begins reports whether a name of the set can begin, or go on, at an offset of a text.
func (n Names) begins(text []byte, at int) bool {
	if at == 0 {
		return true
	}
	if text[at-1] == '.' {
		return n.Below || at == 1 || !isNameByte(text[at-2])
	}
	escaped := at > 2 && text[at-3] == '%' && isHex(text[at-2]) && isHex(text[at-1])
	return escaped || !isNameByte(text[at-1])
}

// continues reports whether the name before a text is a part of a longer one.
func continues(text []byte) bool {
	return len(text) > 0 && isNameByte(text[0]) ||
		len(text) > 1 && text[0] == '.' && isNameByte(text[1])
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || isDigit(c) || c == '-' || c == '_' || c >= 0x80
}
