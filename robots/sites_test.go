package robots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestSites reads robots.txt files of real sites of about 2007, each with the verdicts of a human
// reader on some URLs: "+" is allowed, "-" is not.
func TestSites(t *testing.T) {
	tests := []struct{ site, agent, urls string }{
		{"problogger-net", "amble", "+/ +/a"},
		{"marketing-pilgrim", "amble", "+/"},
		{"search-engine-journal", "amble", "+/"},
		{"matt-cutts", "amble", "+/ -/files/ -/files/a +/files"},
		{"pronet-advertising", "amble", "-/mt -/mt/a -/mtx -/a.cgi -/x/a.cgi +/a.cgi?b +/a.cgix +/"},
		{"techcrunch", "amble", "-/2007/feed/ -/a/b/trackback/x +/feed/ +/trackback/ +/a/feed -//feed/"},
		{"online-marketing-blog", "Googlebot", "-/feed/ -/a/feed/ +/Blogger/ +/feed"},
		{"online-marketing-blog", "amble", "+/feed/ -/Blogger/ +/blogger/ -/2005x/ +/2005/"},
		{"shoemoney", "amble", "+/feed +/gallery2"},
		{"shoemoney", "googlebot", "-/feed -/feeds -/gallery2x -/category/ +/category -/link.php?a"},
		{"scoreboard-media", "amble", "-/cgi-bin/ +/category/ +/wp-content"},
		{"scoreboard-media", "Googlebot", "+/cgi-bin/ -/category/ -/wp-content -/wp- +/wp -/x/feed/"},
		{"seomoz-org", "amble", "-/blogdetail.php?ID=537 -/blogdetail.php?ID=5370 +/blogdetail.php?ID=53 " +
			"-/blog?page=2 +/blog -/trackers -/ugc/author/x +/ugc"},
		{"wolf-howl", "amble", "-/?a -/a?b=c -/2004/05 +/2010/ +/a%3Fb -/terms-of-service/ +/terms-of-service"},
		{"john-chow", "amble", "-/go/x -/feed/ +/feed"},
		{"john-chow", "Googlebot-Image", "+/wp-content/uploads/a +/go/"},
		{"john-chow", "Mediapartners-Google", "+/go/"},
		{"john-chow", "duggmirror", "-/ -/go/"},
		{"smashing-magazine", "amble", "-/styles/a +/styles"},
		{"smashing-magazine", "Mediapartners-Google", "+/styles/a"},
		{"smashing-magazine", "psbot", "-/"},
		{"smashing-magazine", "Slurp", "+/styles/a"},
		{"gizmodo", "amble", "+/index.xml"},
		{"gizmodo", "Googlebot", "-/index.xml +/index.xml?a -/excerpts.xml +/sitemap.xml -/a?view=rss -/?view=rss " +
			"-/aview=rss +/a?view=rss2 -/x?format=rss"},
		{"lifehacker", "Googlebot", "-/index.xml -/a/b?c&view=rss +/a"},
		{"wall-street-journal", "amble", "-/article_email/x -/PA2VJBNA4R/ +/pa2vjbna4r/"},
		{"zdnet", "amble", "-/Ads/ +/ads/ +/i/ -/1304-x -/1317- +/1318- -/mac-ads"},
		{"ny-times", "amble", "-/pages/college/x +/pages/x -/college/ +/2003/ +/x -/nytimes-partners/"},
		{"ny-times", "Mediapartners-Google", "+/college/"},
		{"youtube", "amble", "-/watch_ajax +/watch -/results?q=a -/profile -/profiles -/t/terms +/t/"},
		{"youtube", "mediapartners-google", "+/watch_ajax"},
		{"google", "amble", "+/searchhistory/ -/searchhistory -/search?q=a -/news +/news?output=xhtml " +
			"-/news?output=xhtml& -/newsx -/? -/?q=1 +/ " +
			"-/m?x +/m -/m/search? +/m/search -/u/ +/u -/url?x -/pda/search?q"},
	}
	read := map[string]bool{}
	for _, tt := range tests {
		body := must.Get(os.ReadFile(filepath.Join("testdata", "sites", tt.site+".txt")))(t)
		read[tt.site] = true
		r := Compile(body, tt.agent)
		for _, u := range strings.Fields(tt.urls) {
			assert.Equal(t, r.Match(u[1:]).Allowed, (u[0] == '+'), tt.site, tt.agent, u)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "sites", "*.txt"))
	assert.True(t, err == nil && len(files) == len(read), "%d sites, %d of them tested (%v)", len(files), len(read),
		err)
}

// TestProse parses pages about robots.txt as if they were a robots.txt.
func TestProse(t *testing.T) {
	prose := "The format\n\nThe record starts with one or more User-agent lines.\n\nUser-agent\nThe name of " +
		"the robot.\n\n" +
		"For example:\n\n User-agent: *\n Disallow: /tmp/\n"
	r := Compile([]byte(prose), "amble")
	assert.True(t, !r.Match("/tmp/x").Allowed && r.Match("/a").Allowed, "rules inside prose are parseable lines")
	assert.Equal(t, ContentOf([]byte("The format\n\nThe record starts with one or more lines.\n")), ContentOther,
		"prose is taken for a robots.txt")
}
