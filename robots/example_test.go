package robots_test

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/robots"
)

const file = `User-agent: *
Disallow: /cart
Disallow: /*.pdf$
Allow: /cart/help

User-agent: amble
Crawl-delay: 2.5
Disallow: /search?
Allow: /search?about

Sitemap: /sitemap.xml
Sitemap: https://cdn.example.com/news.xml
`

// A crawler compiles a file once, and matches each URL before it fetches it.
func ExampleCompile() {
	rules := robots.Compile([]byte(file), "amble")
	for _, uri := range []string{"/", "/search?q=tea", "/search?about", "/cart"} {
		fmt.Println(uri, rules.Match(uri).Allowed)
	}
	// Output:
	// / true
	// /search?q=tea false
	// /search?about true
	// /cart true
}

// The first token that has a group wins. Where none has, the group "*" applies.
func ExampleCompile_tokens() {
	for _, tokens := range [][]string{{"amble-news", "amble"}, {"other"}} {
		fmt.Printf("%s: %q\n", tokens, robots.Compile([]byte(file), tokens...).Group())
	}
	// Output:
	// [amble-news amble]: "amble"
	// [other]: "*"
}

// A verdict carries the line that decided.
func ExampleRules_MatchURL() {
	rules := robots.Compile([]byte(file), "other")
	v := rules.MatchURL("https://example.com/manual.pdf")
	fmt.Println(v.Allowed, v.Reason, v.Line, robots.LineText([]byte(file), v.Line))
	// Output:
	// false rule 3 Disallow: /*.pdf$
}

// CrawlDelay returns the delay of the group that applies. ok is false if the file names none.
func ExampleRules_CrawlDelay() {
	for _, token := range []string{"amble", "other"} {
		delay, ok := robots.Compile([]byte(file), token).CrawlDelay()
		fmt.Println(token, delay, ok)
	}
	// Output:
	// amble 2.5s true
	// other 0s false
}

// Sitemaps belong to no group. Their URLs are resolved against the URL of the file.
func ExampleFile_Sitemaps() {
	for _, sitemap := range robots.Parse([]byte(file)).Sitemaps("https://example.com/robots.txt") {
		fmt.Println(sitemap)
	}
	// Output:
	// https://example.com/sitemap.xml
	// https://cdn.example.com/news.xml
}

// A verdict has the line of the rule that decided. The file tells how its author spelled that.
func ExampleFile_Text() {
	f := robots.Parse([]byte(file))
	rules := f.Rules("other")
	v := rules.Match("/cart/help/returns")
	fmt.Printf("allowed: %v, by group %s, line %d: %s\n", v.Allowed, rules.Group(), v.Line, f.Text(v.Line))
	// Output:
	// allowed: true, by group *, line 4: Allow: /cart/help
}

// Parse never fails. It reports what it cannot use as warnings.
func ExampleParse() {
	f := robots.Parse([]byte("Disallow: /a\nUser-agent: *\nDisalow: /b\nCrawl-delay: soon\n"))
	for _, w := range f.Warnings {
		fmt.Printf("line %d: %v\n", w.Line, w.Kind)
	}
	// Output:
	// line 1: outside of groups
	// line 3: misspelt
	// line 4: value
}

// Diff compares two versions of a file for one crawler.
func ExampleDiff() {
	before := robots.Parse([]byte("User-agent: *\nDisallow: /a\nDisallow: /b\n"))
	after := robots.Parse([]byte("User-agent: *\nCrawl-delay: 5\nDisallow: /b\n"))
	for _, change := range robots.Diff(before, after, "amble") {
		fmt.Println(change)
	}
	// Output:
	// - Disallow: /a (line 2)
	// + Crawl-delay: 5
}

// Next turns each response into the next record. Decide says what the record means for the
// pages of the origin.
func ExampleOptions_Next() {
	o := robots.DefaultOptions()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	found := robots.Outcome{URL: "https://example.com/robots.txt", Status: 200, Body: []byte(file)}
	record, _ := o.Next(robots.Record{}, found, now)
	decision := o.Decide(record, time.Second, now)
	fmt.Println(decision.Kind == robots.DecisionMatch, "until", decision.Until.Format(time.DateTime))
	fmt.Println(record.Rules("amble").Match("/search?q=tea").Allowed)

	// The file expires, and the server fails: nothing of the origin may be fetched.
	now = now.Add(25 * time.Hour)
	record, _ = o.Next(record, robots.Outcome{URL: found.URL, Status: 503}, now)
	decision = o.Decide(record, time.Second, now)
	fmt.Println(decision.Kind == robots.DecisionHold, "because it is", decision.Reason)
	// Output:
	// true until 2026-11-21 12:00:01
	// false
	// true because it is unreachable
}
