package extract

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// parseAny is parseDate with every form tried on every text.
func parseAny(text string) time.Time {
	text = strings.Join(strings.Fields(text), " ")
	for _, layout := range slices.Concat(yearTime[:], yearMonthDay[:], yearAndTime[:], weekdayFirst[:],
		dayMonthYear[:]) {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() < 10_000 {
			return at.UTC()
		}
	}
	return time.Time{}
}

// The choice of forms by the start of a text loses none of them.
func FuzzDate(f *testing.F) {
	at := time.Date(2026, 3, 5, 7, 8, 9, 123e6, time.FixedZone("CET", 3600))
	for _, layout := range slices.Concat(yearTime[:], yearMonthDay[:], yearAndTime[:], weekdayFirst[:],
		dayMonthYear[:]) {
		f.Add(at.Format(layout))
		f.Add(strings.ToLower(at.Format(layout)))
	}
	for _, text := range []string{"", "x", "2026-03-05T", "2026", " 2026-03 ", "20260305", "Th",
		"thu, 5 mar 2026 07:08:09 gmt", "12345-01-01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, want := parseDate(text), parseAny(text)
		assert.True(t, len(text) > 64 || got.Equal(want), "%q is %v, want %v", text, got, want)
	})
}

// A text that is no date costs a few attempts, not one for each form.
func TestFewFormsAreTried(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("1", 60), "2026-99-99", "2026-99-99T99:99:99Z", "99 Foo 2026",
		strings.Repeat("9", 4) + strings.Repeat(" ", 60)} {
		assert.AtMost(t, len(layoutsOf(text)), 5, text, "forms are tried")
	}
}
