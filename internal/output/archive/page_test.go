package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func fullPage() Page {
	return Page{
		URL:              "https://example.com/a?b=1&c=<2>",
		Status:           301,
		FetchedAt:        time.Date(2026, 11, 20, 13, 14, 15, 16_999_999, time.FixedZone("", 3600)),
		FirstByte:        12_345 * time.Microsecond,
		Duration:         time.Second,
		ContentType:      "text/html; charset=utf-8",
		Bytes:            5,
		Digest:           digest.Of([]byte("hello")).String(),
		Title:            "A \"title\"\nof two lines",
		Kind:             "sitemap",
		Language:         "en",
		Canonical:        "https://example.com/a",
		Robots:           []string{"noindex", "max-snippet:20"},
		NoIndex:          true,
		Preferences:      []string{"content-usage: train-ai=n"},
		Usage:            map[string]Usage{"train-ai": {"n", "header: Content-Usage: train-ai=n"}},
		Licenses:         []string{"https://example.com/license.xml"},
		UnavailableAfter: time.Date(2027, 1, 2, 3, 4, 5, 6, time.UTC),
		Depth:            2,
		Via:              "https://example.com/",
		Outlinks:         7,
		Redirect:         "https://www.example.com/a",
		Reason:           "redirect",
		Error:            "none",
		Attempts:         3,
		Truncated:        true,
		Extracted:        ExtractedPart,
		Fields:           map[string]any{"tags": []string{"a", "<b>"}, "price": "5 €"},
	}
}

func TestEncodeGolden(t *testing.T) {
	tests := []struct {
		name string
		page Page
		want string
	}{
		{"everything", fullPage(),
			`{"version":1,"url":"https://example.com/a?b=1&c=<2>","status":301,"fetched_at":"2026-11-20T12:14:15.016Z",` +
				`"first_byte_ms":12.345,"duration_ms":1000,"content_type":"text/html; charset=utf-8","kind":"sitemap","bytes":5,` +
				`"digest":"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",` +
				`"title":"A \"title\"\nof two lines","language":"en","canonical":"https://example.com/a","robots":["noindex","max-snippet:20"],"noindex":true,` +
				`"unavailable_after":"2027-01-02T03:04:05Z","preferences":["content-usage: train-ai=n"],` +
				`"usage":{"train-ai":{"preference":"n","from":"header: Content-Usage: train-ai=n"}},"licenses":["https://example.com/license.xml"],"depth":2,"via":"https://example.com/","outlinks":7,` +
				`"redirect":"https://www.example.com/a","reason":"redirect","error":"none","attempts":3,"truncated":true,"extracted":"part",` +
				`"fields":{"price":"5 €","tags":["a","<b>"]}}` + "\n"},
		{"the least", Page{URL: "http://a/"},
			`{"version":1,"url":"http://a/","bytes":0,"depth":0,"outlinks":0,"attempts":0}` + "\n"},
	}
	for _, tt := range tests {
		got, err := tt.page.Encode()
		assert.True(t, err == nil && string(got) == tt.want, "%s: %v\ngot  %swant %s", tt.name, err, got, tt.want)
	}
}

func TestEncodeNeedsURL(t *testing.T) {
	_, err := (Page{Status: 200}).Encode()
	must.True(t, errors.Is(err, ErrPage), "got %v", err)
}

func TestEncodeBoundsTexts(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	got := must.Get(Page{URL: "http://a/", Title: long, ContentType: long, Language: long, Error: long}.Encode())(t)
	assert.AtMost(t, len(got), 5*maxText, "bytes from texts of 2 MiB")
	assert.True(t, !bytes.ContainsRune(got, utf8.RuneError), "a character was cut in two")
	// Continuation bytes alone cannot be cut between characters.
	must.Get((Page{URL: "http://a/", Title: strings.Repeat("\x80", 1<<20)}).Encode())(t)
}

func FuzzEncode(f *testing.F) {
	f.Add("http://a/", "title", "text/html", int64(5), 200)
	f.Add("http://a/", "\xff\xfe\n\r\u2028</script>", "\x00", int64(-1), -5)
	f.Fuzz(func(t *testing.T, url, title, contentType string, n int64, status int) {
		p := Page{URL: url, Title: title, ContentType: contentType, Error: title, Status: status, Bytes: n,
			Duration: time.Duration(n)}
		got, err := p.Encode()
		if err != nil {
			must.True(t, url == "", "%v", err)
			return
		}
		must.True(t, bytes.IndexByte(got, '\n') == len(got)-1, "not one line: %q", got)
		must.True(t, utf8.Valid(got), "not UTF-8: %q", got)
		var back line
		must.Do(t, json.Unmarshal(got, &back), got)
		must.True(t, back.Status == status && back.Bytes == n && back.Version == Version, "came back as %+v", back)
		must.True(t, !utf8.ValidString(title) || len(title) > maxText || back.Title == title,
			"title %q came back as %q", title, back.Title)
	})
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]float64{
		0: 0, 999: 0, time.Microsecond: 0.001, 1234567 * time.Nanosecond: 1.234, math.MaxInt64: 9223372036854.775,
	} {
		assert.Equal(t, milliseconds(d), want, d, "ns")
	}
}

func BenchmarkEncode(b *testing.B) {
	p := fullPage()
	for b.Loop() {
		must.Get(p.Encode())(b)
	}
}
