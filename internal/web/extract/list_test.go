package extract

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// showItem writes an item as "role path", with its other data.
func showItem(i Item) string {
	s := i.Role.String() + " " + strings.TrimPrefix(i.URL.String(), "http://site.test")
	if !i.Modified.IsZero() {
		s += " " + i.Modified.Format(time.RFC3339)
	}
	if i.Frequency != FrequencyUnknown {
		s += " " + i.Frequency.String()
	}
	if i.Priority != defaultPriority {
		s += fmt.Sprintf(" %.1f", i.Priority)
	}
	return s
}

// readAll sniffs and reads a list at http://site.test/dir/list that was announced as a sitemap.
func readAll(t testing.TB, text string, o ListOptions) (List, []string) {
	t.Helper()
	kind := SniffList("", []byte(text), true)
	items := []string{}
	list := must.Get(ReadList(strings.NewReader(text), kind, "", mustParse(t, "http://site.test/dir/list"), o,
		func(i Item) error {
			items = append(items, showItem(i))
			return nil
		}))(t)
	assert.Equal(t, list.Items, len(items), "items handed over, the list")
	return list, items
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write([]byte(text)))(t)
	must.Do(t, z.Close())
	return b.String()
}

const urlset = `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`

func TestSitemap(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"everything there is",
			urlset +
				`<url><loc>http://site.test/a</loc><lastmod>2025-03-01</lastmod><changefreq>Daily</changefreq><priority>0.8</priority></url></urlset>`,
			[]string{"page /a 2025-03-01T00:00:00Z daily 0.8"}},
		{"nothing but the URL",
			urlset + "<url>\n <loc>\n http://site.test/a </loc></url><url><loc>/b</loc></url></urlset>",
			[]string{"page /a", "page /b"}},
		{"entities", urlset + `<url><loc>http://site.test/?a=1&amp;b=&#50;&#x33;</loc></url>`,
			[]string{"page /?a=1&b=23"}},
		{"an & that nobody escaped", urlset + `<url><loc>http://site.test/?a=1&copy=2&lt</loc></url>`,
			[]string{"page /?a=1&copy=2&lt"}},
		{"CDATA", urlset + `<url><loc><![CDATA[http://site.test/?a&amp;b]]></loc></url>`, []string{"page /?a&amp;b"}},
		{"a prefix", `<s:urlset xmlns:s="x"><s:url><s:loc>/a</s:loc><s:lastmod>2024</s:lastmod></s:url></s:urlset>`,
			[]string{"page /a 2024-01-01T00:00:00Z"}},
		{"images and videos are not included", urlset + `<url><image:image><image:loc>/i.png</image:loc></image:image><loc>/a</loc>
			<video:video><video:content_loc>/v.mp4</video:content_loc></video:video></url>`, []string{"page /a"}},
		{"the page that plays a video",
			urlset + `<url><loc>/a</loc><video:video><video:player_loc>/play</video:player_loc></video:video></url>`,
			[]string{"page /a", "alternate /play"}},
		{"languages",
			urlset +
				`<url><loc>/en</loc><xhtml:link rel="alternate" hreflang="de" href="/de"/><xhtml:link rel="alternate" hreflang="fr" href="/fr?a&amp;b"/></url>`,
			[]string{"page /en", "alternate /de", "alternate /fr?a&b"}},
		{"news",
			urlset +
				`<url><loc>/n</loc><news:news><news:title>T</news:title><news:publication_date>2025-05-05T10:00:00+02:00</news:publication_date></news:news></url>`,
			[]string{"page /n 2025-05-05T08:00:00Z"}},
		{"an index",
			`<sitemapindex><sitemap><loc>/one.xml</loc><lastmod>2025-01-02</lastmod></sitemap><sitemap><loc>/two.xml.gz</loc></sitemap></sitemapindex>`,
			[]string{"sitemap /one.xml 2025-01-02T00:00:00Z", "sitemap /two.xml.gz"}},
		{"elements left open", urlset + `<url><loc>/a<url><loc>/b</loc><url><loc>/c</loc>`,
			[]string{"page /b", "page /c"}},
		{"nonsense values", urlset + `<url><loc>/a</loc><lastmod>yesterday</lastmod><changefreq>often</changefreq><priority>NaN</priority></url>
			<url><loc>/b</loc><priority>17</priority></url><url><loc>/c</loc><priority>-1</priority></url>`, []string{"page /a", "page /b 1.0", "page /c 0.0"}},
		{"no URLs", urlset + `<url><loc>mailto:a@b</loc></url><url><loc></loc></url><url></url>`, []string{}},
		{"after a message", "Warning: cannot connect\n" + urlset + `<url><loc>/a</loc></url></urlset>`,
			[]string{"page /a"}},
		{"comments and a document type",
			`<!DOCTYPE urlset [ <!ENTITY x "y"> ]><!-- <url><loc>/no</loc></url> --><urlset><url><!-- --><loc>/a</loc></url></urlset>`, []string{"page /a"}},
		{"text", "\ufeffhttp://site.test/a\r\n\r\n  HTTPS://other.test/b \n# no\nmailto:x@y\nhttp://site.test/c",
			[]string{"page /a", "page https://other.test/b", "page /c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := readAll(t, tt.text, DefaultListOptions())
			assert.True(t, slices.Equal(got, tt.want), "items %q\nwant  %q", got, tt.want)
			if _, got := readAll(t, zipped(t, tt.text), DefaultListOptions()); !slices.Equal(got, tt.want) {
				t.Errorf("compressed: items %q\nwant  %q", got, tt.want)
			}
		})
	}
}

func TestSitemapMedia(t *testing.T) {
	o := DefaultListOptions()
	o.Media = true
	_, got := readAll(t, urlset+`<url><loc>/a</loc><image:image><image:loc>/i.png</image:loc><image:title>x</image:title></image:image>
		<video:video><video:thumbnail_loc>/t.png</video:thumbnail_loc><video:content_loc>/v.mp4</video:content_loc></video:video></url>`, o)
	assert.Slice(t, got, []string{"page /a", "media /i.png", "media /t.png", "media /v.mp4"}, "items")
}

func TestFeeds(t *testing.T) {
	tests := []struct {
		name, text, title string
		want              []string
	}{
		{"RSS 2.0", `<rss version="2.0"><channel><title>The  news</title><link>http://site.test/</link><image><link>/no</link><title>no</title></image>
			<item><title>One</title><link>http://site.test/1?a&amp;b</link><pubDate>Sat, 01 Mar 2025 10:00:00 GMT</pubDate><guid>tag:x</guid></item>
			<item><guid isPermaLink="true">/2</guid></item><item><guid isPermaLink="false">/no</guid></item><item><guid>/3</guid><enclosure url="/sound.mp3"/></item></channel></rss>`,
			"The news", []string{"page /", "page /1?a&b 2025-03-01T10:00:00Z", "page /2", "page /3"}},
		{"markup in a description", `<rss><channel><item><description><p>see <a href=/no>x</a><link>/no</link></p></description><link>/1</link></item>
			<item><content:encoded><![CDATA[<link>/no</link>]]></content:encoded><link>/2</link></item></channel></rss>`, "", []string{"page /1", "page /2"}},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><link rel="self" href="/self"/><link href="/home"/><link rel="next" href="/feed?page=2"/>
			<entry><link rel="alternate" href="/1"/><link rel="edit" href="/no"/><updated>2025-03-01T10:00:00Z</updated><published>2024-01-01T00:00:00Z</published></entry>
			<entry><link href="/2"/><link href="/2.pdf" rel="alternate"/><content type="xhtml"><div><link href="/no"/><entry></entry></div></content></entry></feed>`,
			"T",
			[]string{"page /home", "next /feed?page=2", "page /1 2025-03-01T10:00:00Z", "page /2", "alternate /2.pdf"}},
		{"xml:base",
			`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://site.test/b/"><entry xml:base="c/"><link href="1"/></entry><entry><link xml:base="/d/" href="2"/></entry></feed>`,
			"", []string{"page /b/c/1", "page /d/2"}},
		{"RSS 1.0", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><title>T</title><link>/home</link></channel>
			<item rdf:about="/1"><link>/1</link><dc:date>2025-03-01</dc:date></item></rdf:RDF>`, "T", []string{"page /home", "page /1 2025-03-01T00:00:00Z"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, got := readAll(t, tt.text, DefaultListOptions())
			assert.True(t, slices.Equal(got, tt.want) && list.Title == tt.title, "title %q, items %q\nwant  %q, %q",
				list.Title, got, tt.title, tt.want)
		})
	}
}

func TestJSONFeed(t *testing.T) {
	const text = `{"version": "https://jsonfeed.org/version/1.1", "title": "T", "home_page_url": "/", "next_url": "/feed?2", "items": [
		{"url": "/1", "date_published": "2025-03-01T10:00:00Z", "attachments": [{"url": "/a.mp3"}]}, {"external_url": "http://other.test/"}]}`
	assert.True(t, SniffList("text/plain", []byte(text), true) == NotAList &&
		SniffList("application/feed+json", []byte(text), false) == ListJSON,
		"a JSON Feed is one by its type and its version")
	var got []string
	list, err := ReadList(strings.NewReader(text), ListJSON, "application/feed+json",
		mustParse(t, "http://site.test/feed"), DefaultListOptions(),
		func(i Item) error { got = append(got, showItem(i)); return nil })
	want := []string{"page /", "next /feed?2", "page /1 2025-03-01T10:00:00Z", "page http://other.test/"}
	assert.True(t, err == nil && list.Title == "T" && slices.Equal(got, want), "%v, title %q, items %q\nwant %q", err,
		list.Title, got, want)
}

func TestSniffList(t *testing.T) {
	tests := []struct {
		text      string
		announced bool
		want      ListKind
	}{
		{urlset, false, ListSitemap}, {"\ufeff <sitemapindex>", false, ListIndex},
		{"<!-- x --><?y?><!DOCTYPE z><RSS version=2>", false, ListRSS},
		{`<feed xmlns="http://www.w3.org/2005/Atom">`, false, ListAtom}, {`<feed><thing>`, false, NotAList},
		{`<rdf:RDF xmlns="http://purl.org/rss/1.0/">`, false, ListRSS},
		{`<rdf:RDF>`, false, NotAList}, {"<!DOCTYPE html><html><urlset>", false, NotAList},
		{"http://site.test/\n", false, NotAList}, {"http://site.test/\n", true, ListText},
		{"http://site.test/ is a site", true, NotAList}, {"", true, NotAList}, {"<", true, NotAList},
		{"<!--", true, NotAList}, {"{}", true, NotAList},
		{"\x1f\x8b broken", true, NotAList}, {zipped(t, urlset), false, ListSitemap},
		{zipped(t, "text"), false, NotAList},
	}
	for _, tt := range tests {
		assert.Equal(t, SniffList("", []byte(tt.text), tt.announced), tt.want, tt.text, "announced", tt.announced)
	}
}

func TestListEncodings(t *testing.T) {
	latin := `<?xml version="1.0" encoding="iso-8859-1"?><urlset><url><loc>/` + "\xfc" + `</loc></url></urlset>`
	_, got := readAll(t, latin, DefaultListOptions())
	assert.True(t, slices.Equal(got, []string{"page /%C3%BC"}), "iso-8859-1: %q", got)
	wide := "\xff\xfe"
	for _, unit := range utf16.Encode(
		[]rune(`<?xml version="1.0" encoding="utf-16"?><urlset><url><loc>/ü</loc></url></urlset>`)) {
		wide += string([]byte{byte(unit), byte(unit >> 8)})
	}
	if _, got := readAll(t, wide, DefaultListOptions()); !slices.Equal(got, []string{"page /%C3%BC"}) {
		t.Errorf("utf-16: %q", got)
	}
}

func TestDates(t *testing.T) {
	for text, want := range map[string]string{
		"2025": "2025-01-01T00:00:00Z", "2025-03": "2025-03-01T00:00:00Z", "2025-03-04": "2025-03-04T00:00:00Z",
		"2025-03-04T05:06Z":         "2025-03-04T05:06:00Z",
		"2025-03-04T05:06:07+01:00": "2025-03-04T04:06:07Z", "2025-03-04T05:06:07.89Z": "2025-03-04T05:06:07.89Z",
		"2025-03-04 05:06:07":            "2025-03-04T05:06:07Z",
		"Tue, 4 Mar 2025 05:06:07 +0100": "2025-03-04T04:06:07Z",
		"Tue, 04 Mar 2025 05:06:07 GMT":  "2025-03-04T05:06:07Z",
		"4 Mar 2025 05:06:07 GMT":        "2025-03-04T05:06:07Z",
		"":                               "", "now": "", "0001-01-01": "", "2025-13-01": "",
	} {
		got := ""
		if at := parseDate(text); !at.IsZero() {
			got = at.Format(time.RFC3339Nano)
		}
		assert.Equal(t, got, want, text)
	}
}

// repeated reads a text that is made as it is read.
type repeated struct {
	head, unit string
	left       int // bytes
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) && r.left > 0 {
		if r.head == "" {
			r.head = r.unit
		}
		k := copy(p[n:min(len(p), n+r.left)], r.head)
		r.head, r.left, n = r.head[k:], r.left-k, n+k
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestListsAreBounded(t *testing.T) {
	o := ListOptions{MaxItems: 1000, MaxBytes: 512 << 10}
	for name, r := range map[string]*repeated{
		"items without end":                {urlset, "<url><loc>http://site.test/a</loc></url>", 1 << 40},
		"refused items without end":        {urlset, "<url><loc>x:y</loc></url>", 1 << 40},
		"elements without end":             {urlset, "<a>", 1 << 40},
		"nested items without URL":         {urlset, "<url>", 1 << 40},
		"a text without end":               {urlset + "<url><loc>", "x", 1 << 40},
		"an attribute without end":         {urlset + "<url a='", "x", 1 << 40},
		"attributes without end":           {urlset + "<url ", "a ", 1 << 40},
		"alternates without end":           {urlset + "<url><loc>/a</loc>", "<link rel=alternate href='/x'/>", 1 << 40},
		"a comment without end":            {urlset + "<!--", "x", 1 << 40},
		"CDATA without end":                {urlset + "<url><loc><![CDATA[", "x", 1 << 40},
		"entities without end":             {urlset + "<url><loc>", "&amp;", 1 << 40},
		"an item broken off at the bounds": {urlset, "<url><loc>/a</loc>" + strings.Repeat(" ", 100_000), 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			list, err := ReadList(&r, ListSitemap, "", mustParse(t, "http://site.test/"), o,
				func(Item) error { return nil })
			assert.True(t, err == nil && list.Truncated && list.Items <= o.MaxItems, "%v, %+v", err, list)
			assert.AtMost(t, int64(1<<40-r.left), o.MaxBytes+64<<10, "bytes read")
		})
	}
	t.Run("a bomb", func(t *testing.T) {
		bomb := zipped(t, urlset+"<url><loc>/a</loc></url>"+strings.Repeat(" ", 16<<20))
		list, got := readAll(t, bomb, o)
		assert.True(t, list.Truncated && len(got) == 1, "%+v %q", list, got)
	})
	t.Run("broken off", func(t *testing.T) {
		whole := zipped(t, urlset+strings.Repeat("<url><loc>/a</loc></url>", 1000))
		list, _ := readAll(t, whole[:len(whole)-20], o)
		assert.True(t, list.Truncated, "%+v", list)
	})
	t.Run("exactly at the bounds", func(t *testing.T) {
		text := urlset + strings.Repeat("<url><loc>/a</loc></url>", 1000) + "</urlset>"
		list, got := readAll(t, text, ListOptions{MaxItems: 1000, MaxBytes: int64(len(text))})
		assert.True(t, !list.Truncated && len(got) == 1000, "%+v", list)
		if list, got := readAll(t, text, ListOptions{MaxItems: 999, MaxBytes: int64(len(text))}); !list.Truncated ||
			len(got) != 999 {
			t.Errorf("%+v", list)
		}
	})
}

func TestListEndsWithItsReceiver(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	_, err := ReadList(strings.NewReader(urlset+strings.Repeat("<url><loc>/a</loc></url>", 10)), ListSitemap, "",
		mustParse(t, "http://site.test/"),
		DefaultListOptions(), func(Item) error {
			if n++; n == 3 {
				return stop
			}
			return nil
		})
	assert.True(t, errors.Is(err, stop) && n == 3, "%v after %d items", err, n)
}

func fuzzList(f *testing.F, kinds []ListKind, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed), "application/xml")
		f.Add([]byte(zipped(f, seed)), "text/xml; charset=iso-8859-1")
	}
	base := mustParse(f, "http://site.test/dir/list")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		SniffList(contentType, body, true)
		SniffList(contentType, body, false)
		o := ListOptions{MaxItems: 20, MaxBytes: 1 << 16, Media: true}
		for _, kind := range kinds {
			n := 0
			list, err := ReadList(bytes.NewReader(body), kind, contentType, base, o, func(i Item) error {
				n++
				assert.True(t, !i.URL.IsZero() && !(i.Priority < 0) && !(i.Priority > 1) && i.Frequency <= Never &&
					i.Role <= RoleNext && (i.Modified.IsZero() || i.Modified.Year() >= 1970), "item %+v", i)
				return nil
			})
			assert.True(t, err == nil && n == list.Items && n <= o.MaxItems && len(list.Title) <= maxTitleBytes &&
				list.Title == strings.ToValidUTF8(list.Title, ""), "%v: %v, %d items, %+v", kind, err, n, list)
		}
	})
}

func FuzzSitemap(f *testing.F) {
	fuzzList(f, []ListKind{ListSitemap, ListIndex, ListText},
		urlset+
			`<url><loc>http://site.test/a&amp;b</loc><lastmod>2025-03-01</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url></urlset>`,
		`<sitemapindex><sitemap><loc><![CDATA[/one.xml]]></loc></sitemap>`, "http://site.test/a\nhttp://site.test/b",
		urlset+
			`<url><image:image><image:loc>i</image:loc></image:image><xhtml:link rel=alternate href=x /><news:news><news:publication_date>2025`)
}

func FuzzFeed(f *testing.F) {
	fuzzList(f, []ListKind{ListRSS, ListAtom, ListJSON},
		`<rss><channel><title>T</title><link>/</link><item><link>/1</link><pubDate>Sat, 01 Mar 2025 10:00:00 GMT</pubDate><guid isPermaLink=true>/2</guid><enclosure url=x /></item>`,
		`<feed xml:base="/b/"><link rel=next href=2 /><entry xml:base=c><link href=1 /><link href=2 /><updated>2025</updated><content><p></content></entry>`,
		`{"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": [{"url": "/1", "attachments": [{"url": "/2"}]}]}`)
}
