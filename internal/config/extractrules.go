//go:build !core

package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/output/formats"
	"github.com/amble-crawler/amble/internal/web/extract"
)

// maxExtractRules bounds the rules: each page is matched against them in order.
const maxExtractRules = 1000

// ofModules checks the settings of modules that are not values of the table.
func (k *checker) ofModules() {
	const key = "extract.rules"
	if len(k.c.Extract.Rules) > maxExtractRules {
		k.conflict(key, fmt.Sprintf("want at most %d items; a pattern such as *.example.com stands for many hosts",
			maxExtractRules))
		return
	}
	for i, item := range k.c.Extract.Rules {
		reject := func(read, message string) { k.rejectItem(key, i, read, message) }
		switch {
		case len(item.Hosts) == 0 && item.Pattern == "":
			reject("item "+fmt.Sprint(i+1), "want hosts, or a pattern: a regular expression of path and query")
		case len(item.Links)+len(item.Ignore)+len(item.Fields) == 0:
			reject("item "+fmt.Sprint(i+1), "want links, ignore or fields: what to extract from the pages")
		}
		checkPatterns(item.Hosts, reject)
		_, err := item.compile()
		var wrong extract.RuleErrors
		errors.As(err, &wrong)
		for _, bad := range wrong {
			reject(bad.Text, wantedOfRule(bad))
		}
	}
}

// wantedOfRule says what is wrong with a text of a rule and what to write instead.
func wantedOfRule(bad *extract.RuleError) string {
	message := bad.Key + ": " + strings.TrimPrefix(bad.Err.Error(), "error parsing regexp: ")
	if bad.Key == "pattern" {
		return message + "; want a regular expression of Go (RE2)"
	}
	return message + "; docs/EXTRACTION.md has the selectors"
}

// compile makes a rule of internal/modules/pagerules.
func (item *ExtractRule) compile() (extract.Rule, error) {
	text := extract.RuleText{Pattern: item.Pattern, Links: item.Links, Ignore: item.Ignore, Fields: item.Fields}
	text.Hosts = hostPatterns(item.Hosts)
	return formats.PageRule(&text)
}

// pageRules compiles the rules for pages. It returns no error for those of a Config from Load.
func pageRules(items []ExtractRule) (rules []extract.Rule, err error) {
	for _, item := range items {
		rule, err := item.compile()
		if err != nil {
			return nil, fmt.Errorf("extract.rules: %w", err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
