package marks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/storage"
)

// Passed is what the work of one lease came across and keeps no rows of.
type Passed struct {
	Outside, Deep uint32 // links: beyond the scope; on a page at the greatest depth
	kind          string // Content-Type of a response with content; empty: there was none
	bytes         uint64 // of its body
}

// Response takes note of a response with content.
func (p *Passed) Response(contentType string, bytes uint64) {
	p.kind, p.bytes = cmp.Or(contentType, "none"), bytes
}

// Totals are the sums of what was passed, over all runs. Types are the responses with content by media type; those
// that are not counted apart are OtherTypes.
type Totals struct {
	Outside uint64            `json:"outside,omitempty"`
	Deep    uint64            `json:"deep,omitempty"`
	Types   map[string]Amount `json:"types,omitempty"`
}

// Amount is a number of responses, and the bytes of their bodies.
type Amount struct {
	Responses uint64 `json:"responses"`
	Bytes     uint64 `json:"bytes"`
}

// Servers name types as they like: so many are counted apart, of so many bytes each.
const maxTypes, maxType, OtherTypes = 60, 60, "other"

// Take adds what one lease has passed.
func (t *Totals) Take(p *Passed) {
	t.Outside, t.Deep = t.Outside+uint64(p.Outside), t.Deep+uint64(p.Deep)
	if p.kind != "" {
		t.add(mediaType(p.kind), Amount{1, p.bytes})
	}
}

// Add adds other totals.
func (t *Totals) Add(more *Totals) {
	t.Outside, t.Deep = t.Outside+more.Outside, t.Deep+more.Deep
	for name, n := range more.Types {
		t.add(name, n)
	}
}

func (t *Totals) add(name string, n Amount) {
	if t.Types == nil {
		t.Types = make(map[string]Amount)
	}
	if _, known := t.Types[name]; !known && len(t.Types) >= maxTypes {
		name = OtherTypes
	}
	sum := t.Types[name]
	t.Types[name] = Amount{sum.Responses + n.Responses, sum.Bytes + n.Bytes}
}

// mediaType returns the media type of a Content-Type, in lower case.
func mediaType(field string) string {
	name, _, _ := strings.Cut(field, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	if len(name) > maxType || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return OtherTypes
	}
	return name
}

// IsZero reports whether nothing was passed.
func (t *Totals) IsZero() bool { return t.Outside == 0 && t.Deep == 0 && len(t.Types) == 0 }

// Encode returns the mark of the totals.
func (t *Totals) Encode() []byte {
	text, _ := json.Marshal(t) // numbers and texts
	return text
}

// DecodeTotals is the inverse of Encode. No text is the zero value; the error wraps storage.ErrCorrupt.
func DecodeTotals(text []byte) (t Totals, err error) {
	if len(text) > 0 {
		if err = json.Unmarshal(text, &t); err != nil {
			err = fmt.Errorf("%w: the totals: %w", storage.ErrCorrupt, err)
		}
	}
	return t, err
}
