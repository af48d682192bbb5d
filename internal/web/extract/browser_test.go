package extract

import (
	"net/http"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// TestNeedsBrowser: a page says that it needs a browser if scripts make its content.
func TestNeedsBrowser(t *testing.T) {
	base := must.Get(weburl.Parse("http://a.test/"))(t)
	text := strings.Repeat("some words ", 40)
	for _, c := range []struct {
		name, document string
		want           bool
	}{
		{"an application", `<title>` + text + `</title><script src=/app.js></script><div id=root></div>`, true},
		{"a module", `<script type=module>import "./x.js"</script><p>Loading`, true},
		{"its notice", `<script src=a></script><noscript>` + text + `</noscript>`, true},
		{"two links", `<script src=a></script><a href=/1>a</a><a href=/2>b</a>`, true},
		{"a style and a template",
			`<script src=a></script><style>` + text + `</style><template><p>` + text + `</template>`, true},
		{"a script in capitals", `<SCRIPT TYPE="Text/JavaScript">x()</SCRIPT>`, true},
		{"three links", `<script src=a></script><a href=/1>a</a><a href=/2>b</a><a href=/3>c</a>`, false},
		{"a text", `<script src=a></script><p>` + text, false},
		{"no script", `<p>Hello`, false},
		{"an empty script", `<script></script><p>Hello`, false},
		{"data", `<script type="application/ld+json">{"a": 1}</script><p>Hello`, false},
		{"nothing", ``, false},
		{"a script that does not end", `<script>` + text, true},
	} {
		page, err := HTML([]byte(c.document), http.Header{}, base, nil, DefaultOptions())
		assert.True(t, err == nil && page.NeedsBrowser == c.want, "%s needs a browser: %v (%v), want %v", c.name,
			page.NeedsBrowser, err, c.want)
	}
}
