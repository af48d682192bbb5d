package urlfrontier

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func parseURL(t testing.TB, text string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(text))(t)
}

// TestParseItem reads lines as the reference's DumpURLs prints them: names in camel case, 64-bit
// numbers as texts, defaults left out.
func TestParseItem(t *testing.T) {
	for line, want := range map[string]Item{
		`{"known":{"info":{"url":"https://example.com/a","key":"example.com","metadata":{"url.path":{"values":` +
			`["https://example.com/","https://example.com/b"]},"empty":{}},"crawlID":"DEFAULT"},` +
			`"refetchableFromDate":"1800000000"},"creationDate":"1700000000"}`: {
			URL: parseURL(t, "https://example.com/a"), Crawl: "DEFAULT", Known: true, Due: time.Unix(1_800_000_000, 0),
			Created: time.Unix(1_700_000_000, 0), Metadata: storage.Metadata{
				"url.path": {"https://example.com/", "https://example.com/b"}, "empty": nil},
		},
		`{"known":{"info":{"url":"http://example.com","key":"com","crawlID":"news"}}}`: {
			URL: parseURL(t, "http://example.com/"), Crawl: "news", Known: true,
		},
		`{"discovered":{"info":{"url":"HTTP://EXAMPLE.com/x#y"}},"ID":"7","later":1}`: {
			URL: parseURL(t, "http://example.com/x"), Crawl: "DEFAULT",
		},
		`{"known":{"info":{"url":"http://example.com/"},"refetchable_from_date":18446744073709551615}}`: {
			URL: parseURL(t, "http://example.com/"), Crawl: "DEFAULT", Known: true, Due: time.Unix(maxUnix, 0),
		},
	} {
		got, err := ParseItem([]byte(line))
		assert.True(t, err == nil && reflect.DeepEqual(got, want), "%s\nis %+v, %v\nwant %+v", line, got, err, want)
	}
	for line, want := range map[string]string{
		`{}`:                                    "neither",
		`{"discovered":{}}`:                     "no \"url\"",
		`{"known":{"info":{"url":"mailto:a"}}}`: "",
		`{"known":{"info":{"url":7}}}`:          "not a URL item",
		`http://example.com/`:                   "not a URL item",
	} {
		got, err := ParseItem([]byte(line))
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s is %+v, %v", line, got, err)
	}
}

// FuzzParseItem writes what it could read, and reads it again.
func FuzzParseItem(f *testing.F) {
	f.Add(
		[]byte(
			`{"known":{"info":{"url":"https://a.example/","metadata":{"k":{"values":["v",""]}}},"refetchableFromDate":"1"}}`))
	f.Add([]byte(`{"discovered":{"info":{"url":"http://a.example:81/b?c"}},"creationDate":"5"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		item, err := ParseItem(line)
		if err != nil {
			return
		}
		written, err := AppendItem(nil, &item)
		must.True(t, err == nil && bytes.IndexByte(written, '\n') == len(written)-1, "%+v is written as %q, %v", item,
			written, err)
		if again, err := ParseItem(written); err != nil || !reflect.DeepEqual(again, item) {
			t.Fatalf("%+v is read back as %+v, %v", item, again, err)
		}
	})
}
