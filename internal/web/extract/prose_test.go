package extract

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// readText extracts a page with all its text.
func readText(t testing.TB, text string, maxText int) Page {
	t.Helper()
	o := DefaultOptions()
	o.Text, o.LinkText, o.MaxText = true, true, maxText
	p, err := HTML([]byte(text), typed("text/html; charset=utf-8"), mustParse(t, "http://site.test/dir/page"), nil, o)
	must.Do(t, err)
	return p
}

func TestText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"words and blocks", "<p>One <b>bo</b>ld\n word</p>and<br>more<ul><li>a<li>b</ul>",
			"One bold word\nand\nmore\na\nb"},
		{"cells stay on a line", "<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc"},
		{"what nobody sees",
			"<title>t</title><script>s</script><style>s</style><p><noscript>n</noscript><p hidden>h</p><p " +
				"style='Display : none'>d</p>" +
				"<p aria-hidden=true>x</p><template>t</template><textarea>t</textarea><select><option>o</select><svg><text>v</text></svg><p>seen", "seen"},
		{"what is around the text",
			"<header>top</header><nav>menu<nav>sub</nav>menu</nav><div " +
				"role=banner>ad<div>ad</div>ad</div><p>text</p><aside>side</aside><footer>end</footer>", "text"},
		{"a section's own header",
			"<article><header>Heading</header><p>text</p><footer>by me</footer></article><footer>end</footer>",
			"Heading\ntext\nby me"},
		{"main is all that counts", "<div>before</div><main><header>Heading</header>text</main><div>after</div>",
			"Heading\ntext"},
		{"main by its role", "<div>before</div><div role=main>a<div>b</div>c</div><div>after</div>", "a\nb\nc"},
		{"two mains", "x<main>a</main>x<main>b</main>x", "a\nb"},
		{"navigation in main", "<main>a<nav>n</nav>b</main>", "a\nb"},
		{"entities", "<p>a&nbsp;b &lt;c&gt; &amp;amp;", "a\u00a0b <c> &amp;"},
		{"hidden elements without an end", "<p>a<img hidden><input hidden>b", "a b"},
		{"lines of code", "<p>so\n it\n is<pre>\n  if a\t{\n\n    b\r\n<b>}</b>\n</pre>done",
			"so it is\nif a {\n\nb\n}\ndone"},
		{"lines in a link", "<pre>a <a href=/x>b\nc</a></pre>", "a b\nc"},
		{"lines behind code", "<pre>a\nb</pre> c\nd", "a\nb\nc d"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, readText(t, tt.text, 1000).Text, tt.want, "text")
			assert.Equal(t, readText(t, tt.text+strings.Repeat("<div>", 600), 1000).Text, tt.want, "deep down: text")
			assert.Equal(t, read(t, tt.text).Text, "", "text without Options.Text")
		})
	}
}

func TestTextIsBounded(t *testing.T) {
	p := readText(t, strings.Repeat("<p>"+strings.Repeat("ü", 700)+"</p>", 100), 1001)
	assert.True(t, len(p.Text) <= 1001 && len(p.Text) >= 990 && utf8.ValidString(p.Text) && p.Cut != 0,
		"%d bytes of text, cut %v", len(p.Text), p.Cut)
	assert.Equal(t, readText(t, "<p>short", 1000).Cut, 0, "short text is said to be truncated")
}

func TestLinkText(t *testing.T) {
	const text = `<nav><a href=/a rel="Next  TAG">to <b>the</b> <svg><title>x</title></svg> <script>no</script>next
		page</a></nav><a href=/b><img src=i alt=" an  image ">of it</a><a href=/c></a><a href=/c>second</a><a href=/c>third</a>
		<map><area href=/d alt="the area" rel=nofollow></map><link rel=next href=/e>` + "<a href=/f>" // long and without an end
	want := []Link{{Text: "to the next page", Rel: "next tag"}, {Text: "an image of it"}, {Text: "second"},
		{Text: "the area", Rel: "nofollow"},
		{Rel: "next"}, {Text: strings.Repeat("y", maxLinkText)}}
	for name, p := range map[string]Page{
		"tree": readText(t, text+strings.Repeat("y", 1000), 1000),
		"flat": readText(t, text+strings.Repeat("y", 1000)+strings.Repeat("<div>", 600), 1000),
	} {
		must.True(t, len(p.Links) == len(want), "%s: links %v", name, p.Links)
		for i, l := range p.Links {
			assert.True(t, l.Text == want[i].Text && l.Rel == want[i].Rel, "%s: %v: text %q rel %q, want %q %q", name,
				l.URL, l.Text, l.Rel, want[i].Text, want[i].Rel)
		}
	}
}
