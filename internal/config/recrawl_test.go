package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// What the section says reaches the plan, a rule with what is in force for all pages where it says
// nothing itself.
func TestRecrawlReachesThePlan(t *testing.T) {
	c := must.Get(inFile(t, `
crawl: {exit_when_done: false}
recrawl:
  policy: nutch
  min_interval: 2h
  budget: 500
  share: 0.25
  gone_after: 3
  rules:
    - {hosts: ["*.News.example"], pattern: "^/live/", policy: fixed, interval: 10m, min_interval: 1m}
    - {pattern: "^/archive/", policy: never}
`, nil, nil))(t)
	o, err := c.CrawlOptions("1.2")
	must.True(t, err == nil && o.Recrawl != nil, "%+v, %v", o.Recrawl, err)
	r := o.Recrawl
	assert.True(t, r.Policy == recrawl.Nutch && r.Min == 2*time.Hour && r.Max == 4320*time.Hour && r.Budget == 500 &&
		r.Missing == 3 && o.Frontier.RecrawlShare == 0.25, "%+v", r)
	first, second := r.Rules[0], r.Rules[1]
	assert.True(t, first.Hosts[0] == "*.news.example" && first.Pattern.String() == "^/live/" &&
		first.Policy == recrawl.Fixed && first.Interval == 10*time.Minute && first.Min == time.Minute &&
		first.Max == 4320*time.Hour, "%+v", first)
	assert.True(t, second.Policy == recrawl.Never && second.Interval == 168*time.Hour, "%+v", second)
	assert.NoError(t, o.Recrawl.Validate())
}

// A crawl that ends when it is done recrawls no page, and neither does one with the policy never.
func TestNoRecrawl(t *testing.T) {
	for _, text := range []string{"", "crawl: {exit_when_done: false}\nrecrawl: {policy: never}"} {
		c := must.Get(inFile(t, text, nil, nil))(t)
		o, err := c.RecrawlOptions()
		assert.True(t, o == nil && err == nil, "%q: %+v, %v", text, o, err)
	}
}

func TestBadRecrawl(t *testing.T) {
	for text, want := range map[string]string{
		"recrawl: {policy: often}": "want one of harmonic, fixed, " +
			"nutch, stormcrawler, never",
		"recrawl: {min_interval: 10h, " +
			"max_interval: 9h}": "is more than recrawl.max_interval, 9h",
		"recrawl: {rules: [{policy: never}]}":                                    "want hosts, or a pattern",
		"recrawl: {rules: [{hosts: [\"a b\"]}]}":                                 "want the name of a host",
		"recrawl: {rules: [{pattern: \"(\"}]}":                                   "want a regular expression",
		"recrawl: {rules: [{pattern: a, policy: often}]}":                        "want one of harmonic",
		"recrawl: {rules: [{pattern: a, interval: 0s}]}":                         "want 1s to 87600h",
		"recrawl: {rules: [{pattern: a, min_interval: 2h, max_interval: 60m}]}":  "is more than max_interval, 1h",
		"recrawl: {max_interval: 2h, rules: [{pattern: a, min_interval: 180m}]}": "is more than max_interval, 2h",
	} {
		var problems Errors
		_, err := inFile(t, text, nil, nil)
		assert.True(t, errors.As(err, &problems) && strings.Contains(problems[0].Message, want),
			"%s: %v, want it to say %q", text, err, want)
	}
}
