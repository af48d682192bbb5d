package robots

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// everything is a file with one of each.
const everything = `# line 1
Disallow: /nobody
Crawl-delay: 1
User-agent: B
Crawl-delay: 2
User-agent: amble
User-agent: *
Crawl-delay: 3
Request-rate: 1/4
Disallow: /a
allow : /a/b # here
Visit-time: 0600-0845
Content-Signal: search=yes, AI-train = no
Content-Usage: /a train-ai=n
Sitemap: s.xml
Host: www.site.example
Clean-param: a&b /c
X-Else: y

User-agent: *
Disallow:
`

func TestParse(t *testing.T) {
	f := Parse([]byte(everything))
	agents := []Agent{{4, "B", "B"}, {6, "amble", "amble"}, {7, "*", "*"}}
	must.True(t, len(f.Groups) == 2 && reflect.DeepEqual(f.Groups[0].Agents, agents) &&
		f.Groups[1].Agents[0].Line == 20, "groups %+v", f.Groups)
	got := fmt.Sprint(f.Groups[0].Rules)
	assert.True(t, got == "[Disallow: /a Allow: /a/b]" && f.Groups[0].Rules[1].Line == 11, "rules %+v", got)
	e := f.Groups[0].Extensions
	assert.True(t, len(e) == 6 && len(e[0].Agents) == 1 && e[0].Agents[0].Name == "B" && len(e[1].Agents) == 2 &&
		e[1].Value == "3", "extensions %+v", e)
	assert.True(t, len(f.Records) == 4 && f.Records[3] == (Field{18, "X-Else", "y"}) && f.Lines == 21 && !f.Cut,
		"records %+v, %d lines", f.Records, f.Lines)
	want := []string{"https://site.example/s.xml"}
	assert.Slice(t, f.Sitemaps("https://site.example/robots.txt"), want, "sitemaps")
	assert.Deep(t, f.CleanParams(), []CleanParam{{17, []string{"a", "b"}, "/c"}}, "clean-param")
	if got := f.Text(11); got != "allow : /a/b # here" || f.Text(0) != "" || f.Text(22) != "" {
		t.Errorf("line 11: %q", got)
	}
	assert.Equal(t, LineText([]byte(everything), 10), "Disallow: /a", "line 10")
}

func TestPolicy(t *testing.T) {
	f := Parse([]byte(everything))
	p := f.Policy("amble")
	assert.True(t, p.Group == "amble" && len(p.Agents) == 1 && len(p.Rules) == 2 && *p.CrawlDelay == 3 &&
		p.RequestRate.Seconds == 4, "%+v", p)
	assert.Deep(t, p.VisitTimes, []Window{{"0600", "0845"}}, "visit times")
	signal := Usage{ContentSignal, 13, "", "search=yes, AI-train = no"}
	usage := Usage{ContentUsage, 14, "/a", "train-ai=n"}
	assert.True(t, reflect.DeepEqual(p.ContentSignals, []Usage{signal}) &&
		reflect.DeepEqual(p.ContentUsage, []Usage{usage}), "preferences %+v %+v", p.ContentSignals, p.ContentUsage)
	d, ok := f.Rules("amble").CrawlDelay()
	assert.True(t, ok && d.Seconds() == 4, "the slower of delay and rate is 4 s, not %v", d)
	if p := f.Policy("B"); *p.CrawlDelay != 2 || p.RequestRate != nil || len(p.Rules) != 2 {
		t.Errorf("B: %+v", p)
	}
	if p := f.Policy("other"); p.Group != "*" || len(p.Agents) != 2 || *p.CrawlDelay != 3 || len(p.Rules) != 2 {
		t.Errorf("other: %+v", p)
	}
	if p := Parse(nil).Policy("amble"); p.Group != "" || p.Rules != nil {
		t.Errorf("nothing: %+v", p)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		body string
		want string // kind and line of each
	}{
		{"User-agent: *\nDisallow: /a\n", ""},
		{"User-agent: *\nDisallow:\n\n# c\n", ""},
		{"\xEF\xBB\xBFUser-agent: *\nDisallow: /a\n", "encoding 0"},
		{string(utf16Of("User-agent: *\nDisallow: /a\n")), "encoding 0"},
		{"User-agent: *\n\xEF\xBB\xBFDisallow: /a\nDisallow: /b\n", "encoding 2, unknown key 2"},
		{"User-agent: *\nDisallow: /a\x00\n", "encoding 2"},
		{"User-agent: *\nDisallow: /caf\xE9\n", "encoding 2"},
		{"Disallow: /a\nCrawl-delay: 5\n", "outside of groups 1, outside of groups 2"},
		{"User-agent: *\nthis is nothing\nDisallow: /a\n", "ignored 2"},
		{"<html>\n", "ignored 1"},
		{"User-agent: *\nNoindex: /a\nDisallow: /a\n", "unknown key 2"},
		{"User-agent: *\nDissallow: /a\n", "misspelt 2"},
		{"User-agent: *\nDisallow /a\n", "misspelt 2"},
		{"User agent: *\nDisallow: /a\n", "misspelt 1"},
		{"User-agent: *\nDisallow: a\n", "pattern 2"},
		{"User-agent: *\nDisallow: https://a.example/\n", "pattern 2"},
		{"User-agent: B2\nDisallow: /a\n", "user-agent 1"},
		{"User-agent: B/1.0\nDisallow: /a\n", "user-agent 1"},
		{"User-agent: \"B\"\nDisallow: /a\n", "user-agent 1"},
		{"User-agent:\nDisallow: /a\n", "user-agent 1"},
		{"User-agent: *b\nDisallow: /a\n", "user-agent 1"},
		{"User-agent: * b\nDisallow: /a\n", "user-agent 1"},
		{"User-agent: *\n", "no rules 1"},
		{"User-agent: *\nDisallow: /a\nCrawl-delay: banana\n", "value 3"},
		{"User-agent: *\nDisallow: /a\nRequest-rate: 5\nVisit-time: night\n", "value 3, value 4"},
		{"Sitemap: /s.xml\nSitemap: ftp://a.example/s\nSitemap: https://a.example/s\n", "sitemap 1, sitemap 2"},
	}
	for _, tt := range tests {
		var got []string
		for _, w := range Parse([]byte(tt.body)).Warnings {
			got = append(got, fmt.Sprintf("%v %d", w.Kind, w.Line))
			assert.True(t, w.Text != "" && !strings.ContainsAny(w.Text, "\x00\n\x1b"), "%q: text %q", tt.body, w.Text)
		}
		assert.Equal(t, strings.Join(got, ", "), tt.want, tt.body, got)
	}
	f := Parse([]byte(strings.Repeat("nothing\n", maxWarnings+5)))
	assert.True(t, len(f.Warnings) == maxWarnings && f.Omitted == 5, "%d warnings, %d omitted", len(f.Warnings),
		f.Omitted)
}

func TestDiff(t *testing.T) {
	old := "User-agent: amble\nCrawl-delay: 5\nDisallow: /a\nDisallow: /b\nAllow: /c\nDisallow: /e%7E\n"
	tests := []struct{ body, want string }{
		{old, ""},
		{"# moved\n\n" + old + "Disallow: /a\n", ""},
		{strings.Replace(old, "%7E", "~", 1), ""},
		{strings.Replace(old, "/b", "/x", 1), "- Disallow: /b (line 4); + Disallow: /x (line 4)"},
		{strings.Replace(old, "Allow: /c", "Disallow: /c", 1), "- Allow: /c (line 5); + Disallow: /c (line 5)"},
		{strings.Replace(old, "delay: 5", "delay: 0.5", 1), "- Crawl-delay: 5; + Crawl-delay: 0.5"},
		{old + "Request-rate: 1/30\n", "+ Request-rate: one request in 30s"},
		{old + "User-agent: B\nDisallow: /\n", ""},
		{"User-agent: *\n" + strings.SplitN(old, "\n", 2)[1], "- group: amble; + group: *"},
		{"", "- group: amble; - Crawl-delay: 5; - Disallow: /a (line 3); - Disallow: /b (line 4); - Allow: /c (line " +
			"5); - Disallow: /e%7E (line 6); + group: none"},
	}
	for _, tt := range tests {
		var got []string
		for _, c := range Diff(Parse([]byte(old)), Parse([]byte(tt.body)), "amble") {
			got = append(got, c.String())
		}
		assert.Equal(t, strings.Join(got, "; "), tt.want, tt.body)
	}
}

func TestRequestURI(t *testing.T) {
	for url, want := range map[string]string{
		"https://a.example":            "/",
		"https://a.example/":           "/",
		"https://a.example/b?c#d":      "/b?c",
		"https://a.example?b":          "/?b",
		"https://a.example;b":          "/;b",
		"https://a.example#/b":         "/",
		"https://u:p@a.example:1/b":    "/b",
		"//a.example/b":                "/b",
		"//a.example":                  "/",
		"/b//c":                        "/b//c",
		"/b?u=https://c/":              "/b?u=https://c/",
		"https://a.example/b?u=c://d":  "/b?u=c://d",
		"a.example/b":                  "/b",
		"":                             "/",
		"https://":                     "/",
		"https:///b":                   "/b",
		"https://a.example//b":         "//b",
		"https://[2001:db8::1]:8080/b": "/b",
	} {
		assert.Equal(t, RequestURI(url), want, url)
	}
}

// TestWindowMinutes: a Visit-time and a Request-rate may begin and end at any minute.
func TestWindowMinutes(t *testing.T) {
	for value, want := range map[string][2]int{
		"0000-2400": {0, 1440}, "0615-0845": {375, 525}, "2259 - 0001": {1379, 1}, "1000-1059": {600, 659},
	} {
		pace := Compile([]byte("User-agent: *\nVisit-time: "+value+"\nRequest-rate: 1/60 "+value+"\n"), "amble").Pace()
		for _, w := range []Window{pace.Visits[0].Window, pace.Rates[0].Window} {
			if from, to := w.Minutes(); from != want[0] || to != want[1] {
				t.Errorf("%q is from minute %d to %d, want %v", value, from, to, want)
			}
		}
	}
}
