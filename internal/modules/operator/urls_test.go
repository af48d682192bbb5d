package operator

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestWhyText: a list of URLs says which fault it was where a reason covers several, and not more than
// fits; what a refusal said is left to the page of the URL.
func TestWhyText(t *testing.T) {
	for want, u := range map[string]inspect.URL{
		"-":                                   {},
		"429":                                 {Reason: "status", Status: 429},
		"robots":                              {Reason: "robots"},
		"wall 403":                            {Reason: "wall", Status: 403, Note: "blocked-by: https://example.com/"},
		"bad_response: unexpected status 304": {Reason: "bad_response", Note: "unexpected status 304"},
		"bad_response: " + strings.Repeat("x", noteWidth-3) +
			"...": {Reason: "bad_response", Note: strings.Repeat("x", 100)},
	} {
		assert.Equal(t, whyText(&u), want)
	}
}
