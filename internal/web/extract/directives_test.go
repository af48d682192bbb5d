package extract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestDirectives(t *testing.T) {
	const after = "2025-06-25T15:00:00Z"
	tests := []struct {
		name, text        string
		tags              []string
		noIndex, noFollow bool
		seen              string // with spaces between
		after             string
	}{
		{name: "nothing"},
		{name: "meta", text: `<meta name=robots content="noindex, nofollow">`, noIndex: true, noFollow: true,
			seen: "noindex nofollow"},
		{name: "meta none in capitals", text: `<META NAME="ROBOTS" CONTENT="NONE">`, noIndex: true, noFollow: true,
			seen: "none"},
		{name: "meta without commas", text: `<meta name=robots content="noindex nofollow">`, noIndex: true,
			noFollow: true,
			seen:     "noindex nofollow"},
		{name: "our meta", text: `<meta name=Amble content=nofollow>`, noFollow: true, seen: "nofollow"},
		{name: "another's meta", text: `<meta name=googlebot content=noindex>`},
		{name: "others are recorded",
			text: `<meta name=robots content="noarchive, max-snippet: -1, index"><meta name=robots content=noarchive>`,
			seen: "noarchive max-snippet:-1 index"},
		{name: "header", tags: []string{"noarchive", "noindex"}, noIndex: true, seen: "noarchive noindex"},
		{name: "header for us", tags: []string{"AMBLE: nofollow, noindex"}, noIndex: true, noFollow: true,
			seen: "nofollow noindex"},
		{name: "header for another", tags: []string{"otherbot: noindex, nofollow"}},
		{name: "header for another, then us", tags: []string{"otherbot: noindex, amble: nofollow"}, noFollow: true,
			seen: "nofollow"},
		{name: "header and meta add up", text: `<meta name=robots content="index, nofollow">`,
			tags:    []string{"noindex"},
			noIndex: true, noFollow: true, seen: "noindex index nofollow"},
		{name: "a date is no name", tags: []string{"unavailable_after: 25 Jun 2025 15:00:00 UTC, noindex"},
			noIndex: true,
			after:   after,
			seen:    "unavailable_after:25_jun_2025_15:00:00_utc noindex"},
		{name: "a date with a comma",
			tags:    []string{"amble: unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noindex"},
			noIndex: true, after: after,
			seen: "unavailable_after:wed,_25_jun_2025_15:00:00_gmt noindex"},
		{name: "a date in a meta",
			text: `<meta name=robots content="unavailable_after: 2025-06-25T15:00:00Z"><meta name=robots content="unavailable_after: 2030-01-01">`, after: after,
			seen: "unavailable_after:2025-06-25t15:00:00z unavailable_after:2030-01-01"},
		{name: "in the form of RFC 850", tags: []string{"unavailable_after: Wednesday, 25-Jun-25 15:00:00 GMT"},
			after: after,
			seen:  "unavailable_after:wednesday,_25-jun-25_15:00:00_gmt"},
		{name: "a date that is none", tags: []string{"unavailable_after: soon"}, seen: "unavailable_after:soon"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := HTML([]byte(tt.text), http.Header{"Content-Type": {"text/html"}, "X-Robots-Tag": tt.tags},
				mustParse(t, "http://a.test/"), []string{"amble"}, DefaultOptions())
			d := &p.Robots
			assert.True(t, err == nil && d.NoIndex == tt.noIndex && d.NoFollow == tt.noFollow,
				"noindex %v nofollow %v, want %v %v (%v)", d.NoIndex, d.NoFollow, tt.noIndex, tt.noFollow, err)
			var seen []string
			for _, word := range d.Seen {
				seen = append(seen, strings.ReplaceAll(word, " ", "_"))
			}
			assert.Equal(t, strings.Join(seen, " "), tt.seen, "seen")
			got := d.UnavailableAfter
			assert.True(t, (got.IsZero() || got.Format(time.RFC3339) == tt.after) && got.IsZero() == (tt.after == ""),
				"unavailable after %v, want %q", got, tt.after)
		})
	}
}

func TestPreferences(t *testing.T) {
	header := http.Header{}
	header.Set("Content-Usage", "train-ai=n,  search=y")
	header.Set("TDM-Reservation", "1")
	header.Set("X-Robots-Tag", "noai, noimageai")
	const text = `<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="https://a.test/policy.json"><meta name=robots content=noai>`
	p, err := HTML([]byte(text), header, mustParse(t, "http://a.test/"), nil, DefaultOptions())
	want := []string{"robots: noai", "robots: noimageai", "content-usage: train-ai=n, search=y", "tdm-reservation: 1",
		"tdm-policy: https://a.test/policy.json"}
	assert.True(t, err == nil && slices.Equal(p.Robots.Preferences, want), "%v %q\nwant %q", err, p.Robots.Preferences,
		want)
}

// TestLicenses finds references to terms in Link fields and in links of the RSL type.
func TestLicenses(t *testing.T) {
	header := http.Header{"Link": {`</a.xml>; rel="license"; type="application/rsl+xml", </b>; rel=next`,
		`<https://l.test/c>;REL="up LICENSE"`, `</d>; title=license`, `<unclosed`}}
	const text = `<link rel=license type="Application/RSL+xml" href=e.xml><link rel=license href=f.html>`
	p, err := HTML([]byte(text), header, mustParse(t, "http://a.test/"), nil, DefaultOptions())
	if want := []string{"/a.xml", "https://l.test/c", "e.xml"}; err != nil || !slices.Equal(p.Robots.Licenses, want) {
		t.Errorf("%v %q\nwant %q", err, p.Robots.Licenses, want)
	}
	header.Set("Link", strings.Repeat(`</`+strings.Repeat("a", 90)+`>;rel=license,`, 1000)+strings.Repeat("<", 9000))
	assert.Equal(t, len(HeaderDirectives(header, nil).Licenses), 1, "licenses")
}

// TestTerms finds documents of terms in scripts, in whichever way the page is read.
func TestTerms(t *testing.T) {
	script := func(attributes, text string) string { return "<script " + attributes + ">" + text + "</script>" }
	const rsl = `type="application/rsl+xml"`
	large, many := script(rsl, strings.Repeat("x", maxTerms+1)), strings.Repeat(script(rsl, "<rsl/>"), 2*maxLicenses)
	for text, want := range map[string]int{
		script(rsl, "<rsl><content/></rsl>"):                                                     1,
		script("TYPE=Application/RSL+XML", "<rsl/>") + "<a href=/x>x</a>":                        1,
		"<body><p>" + script(rsl, "<rsl/>") + "<div>" + script(rsl, "1"):                         2,
		script("", "<rsl/>") + "<style " + rsl + "><rsl/></style>":                               0,
		"<!--" + script(rsl, "<rsl/>") + "--><textarea>" + script(rsl, "<rsl/>") + "</textarea>": 0,
		script("type=application/ld+json", `"application/rsl+xml"`):                              0,
		"<script " + rsl + ">": 0, script(rsl, ""): 0, large: 0, many: maxLicenses,
	} {
		for _, whole := range []bool{false, true} {
			o := DefaultOptions()
			o.Text = whole
			p, err := HTML([]byte(text), nil, mustParse(t, "http://a.test/"), nil, o)
			assert.True(t, err == nil && len(p.Robots.Terms) == want && p.Robots.SaysMore(Directives{}) == (want > 0),
				"%.60q, whole %v: %q, %v", text, whole, p.Robots.Terms, err)
			if want > 0 && !strings.HasPrefix(p.Robots.Terms[0], "<rsl") {
				t.Errorf("%.60q: %q", text, p.Robots.Terms[0])
			}
		}
	}
}

func TestDirectivesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "<meta name=robots content='word%d, %s'><meta name=tdm-policy content=%d>", i,
			strings.Repeat("ü", 1000), i)
	}
	d := read(t, b.String()).Robots
	if len(d.Seen) != maxDirectives || len(d.Preferences) != maxDirectives || len(d.Seen[1]) > maxDirective {
		t.Errorf("%d directives, %d preferences, one of %d bytes", len(d.Seen), len(d.Preferences), len(d.Seen[1]))
	}
}
