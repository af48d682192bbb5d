package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// hostile is what a page may say to whoever looks at the report.
const hostile = "=HYPERLINK(\"http://evil.test\")<script>alert(1)</script>\x1b[31m\u202e"

// example is a report with hostile texts wherever the web decides about a text.
func example() *Summary {
	r := newSummary()
	r.At, r.State = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), "running"
	r.URLs["failed"], r.Statuses["404"], r.Failures["status 404"] = 1, 1, 1
	r.Types = []Type{{hostile, 1, 2}}
	r.Seeds.List = []Seed{{URL: "http://a.test/", State: "failed", Reason: "status 404", Source: hostile}}
	r.Seeds.finish(10)
	r.Broken = Links{1, []Link{{URL: "http://a.test/?q=%3Cb%3E", Reason: "status 404", Note: hostile, Referrers: 2,
		From: []Referrer{{URL: "javascript:alert(1)", Text: hostile, Rel: hostile}, {URL: "http://b.test/"}}}}}
	r.Redirects = Links{1, []Link{{URL: "http://a.test/r", Status: 301, Target: hostile, Via: "http://a.test/",
		Referrers: 1}}}
	r.LeftOut = LeftOut{[]Cause{{"maze", 1, 1}}, []HostLeft{{"a.test", "maze", 1, hostile, hostile}}}
	r.Parts = []Part{{"politeness", "Politeness", hostile, []string{"what"}, [][]string{{hostile}}}}
	r.Output.Damaged = []string{hostile}
	return r
}

func written(t *testing.T, format, table string) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, example().Write(&b, format, table))
	return b.String()
}

// TestHostileTexts: what pages say is text in every form: no script, no formula, no sequence of a terminal.
func TestHostileTexts(t *testing.T) {
	page := written(t, FormatHTML, "")
	for _, bad := range []string{"<script", "href=\"javascript", "href=\"=", "=HYPERLINK(\""} {
		assert.True(t, !strings.Contains(page, bad), "the page has %s", bad)
	}
	for _, good := range []string{"&lt;script&gt;", `href="http://b.test/"`, "http://a.test/?q=%3Cb%3E", "2 pages"} {
		assert.Contains(t, page, good, "the page has no")
	}
	text := written(t, FormatText, "")
	assert.True(t, !strings.ContainsAny(text, "\x1b\u202e") && strings.Contains(text, "b.test"), "%q", text)
	var back Summary
	err := json.Unmarshal([]byte(written(t, FormatJSON, "")), &back)
	assert.True(t, err == nil && back.Broken.List[0].Note == hostile, "%v", err)
	for _, table := range Tables() {
		rows, err := csv.NewReader(strings.NewReader(written(t, FormatCSV, table))).ReadAll()
		must.True(t, err == nil && len(rows) >= 2, "%v %v %v", table, rows, err)
		for _, row := range rows {
			for _, cell := range row {
				assert.True(t, !strings.HasPrefix(cell, "="), "%s has the formula %s", table, cell)
			}
		}
	}
	assert.Equal(t, strings.Count(written(t, FormatCSV, "broken"), "http://a.test/?q="), 2, "rows")
	assert.True(t, example().Write(&bytes.Buffer{}, FormatCSV, "none") != nil, "there is no such table")
}

// TestUncountedSeeds: a report says how many of the seeds it counts, if they are not all.
func TestUncountedSeeds(t *testing.T) {
	a := example()
	a.Seeds.Uncounted = 999_999
	sum := newSummary()
	sum.Add(a, Options{Limit: 10})
	sum.Add(a, Options{Limit: 10})
	assert.Equal(t, sum.Seeds.Total, 1_000_000, "seeds in all")
	for format, says := range map[string]string{
		FormatText: "1,000,000 seeds of which 1 are counted: 1 failed.",
		FormatHTML: "1,000,000 in all, 999,999 of which are not counted: 1 failed.",
	} {
		var b bytes.Buffer
		must.Do(t, sum.Write(&b, format, ""))
		assert.Contains(t, b.String(), says, format, "does not say")
	}
}

// TestAdd: the reports of two parts of a crawl are that of the whole.
func TestAdd(t *testing.T) {
	a, b := example(), example()
	b.Broken.List[0].URL, b.Seeds.List[0].State, b.Seeds.List[0].Fetched = "http://b.test/", stateUnknown, 3
	b.LeftOut.Hosts[0] = HostLeft{Host: "b.test", Cause: "maze", URLs: 5}
	o := Options{Limit: 10, Referrers: 1}
	sum := newSummary()
	sum.Add(b, o)
	sum.Add(a, o)
	s := sum.Seeds
	assert.True(t, s.Total == 1 && s.List[0].State == "failed" && s.List[0].Fetched == 3 && s.States["failed"] == 1,
		"%+v", s)
	assert.True(t, sum.URLs["failed"] == 2 && sum.Types[0].Responses == 2 && sum.Broken.Total == 2 &&
		len(sum.Broken.List) == 2 && sum.LeftOut.Causes[0] == (Cause{"maze", 2, 2}) &&
		sum.LeftOut.Hosts[0].Host == "b.test", "%+v", sum)
	found := func(pages ...string) *Found {
		r := &Referrers{Count: uint64(len(pages))}
		for _, p := range pages {
			r.List = append(r.List, Referrer{URL: p})
		}
		return &Found{URLs: map[string]*Referrers{"http://b.test/": r}}
	}
	sum.Broken.List[0].From, sum.Broken.List[1].From = nil, nil
	sum.Complete(o, found("http://x.test/", "http://y.test/"), found("http://y.test/", "http://z.test/"))
	l := sum.Broken.List[0]
	assert.True(t, l.URL == "http://b.test/" && l.Referrers == 4 && len(l.From) == 1, "%+v", l)
	o.Limit = 1
	if sum.Add(a, o); len(sum.Broken.List) != 1 || sum.Broken.Total != 3 || len(sum.LeftOut.Hosts) != 1 {
		t.Errorf("%+v", sum)
	}
}
