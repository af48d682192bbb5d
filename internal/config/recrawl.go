package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
)

// Recrawl says when fetched pages are recrawled, by a crawl that does not end when it is done.
type Recrawl struct {
	Policy      string        `mapstructure:"policy" default:"harmonic" is:"agreed"`
	Interval    time.Duration `mapstructure:"interval" range:"1s..87600h" is:"agreed"`
	MinInterval time.Duration `mapstructure:"min_interval" range:"1s..87600h" is:"agreed"`
	MaxInterval time.Duration `mapstructure:"max_interval" range:"1s..87600h" is:"agreed"`
	Budget      int           `mapstructure:"budget" range:"0..1000000000" is:"agreed"`
	Share       float64       `mapstructure:"share" range:"0..1" is:"live"`
	SimilarBits int           `mapstructure:"similar_bits" range:"0..32" is:"agreed"`
	GoneAfter   int           `mapstructure:"gone_after" range:"1..100" is:"agreed"`
	Rules       []RecrawlRule `mapstructure:"rules" is:"agreed"`
}

// RecrawlRule gives pages a policy of their own. A nil or empty field is as for all pages.
type RecrawlRule struct {
	Hosts       []string       `mapstructure:"hosts"`   // names, and patterns such as *.example.com; none: every host
	Pattern     string         `mapstructure:"pattern"` // regular expression of path and query
	Policy      string         `mapstructure:"policy"`
	Interval    *time.Duration `mapstructure:"interval" range:"1s..87600h"`
	MinInterval *time.Duration `mapstructure:"min_interval" range:"1s..87600h"`
	MaxInterval *time.Duration `mapstructure:"max_interval" range:"1s..87600h"`
}

// RecrawlOptions returns the options of internal/rules/recrawl, or nil if the crawl ends when it is done
// or recrawls no page. It returns no error for a Config from Load.
func (c *Config) RecrawlOptions() (*recrawl.Options, error) {
	r := c.Recrawl
	policy, err := recrawl.ParsePolicy(r.Policy)
	if err != nil {
		return nil, err
	}
	if c.Crawl.ExitWhenDone || policy == recrawl.Never && len(r.Rules) == 0 {
		return nil, nil
	}
	_, o := c.options()
	o.Policy = policy
	for _, item := range r.Rules {
		rule, err := item.rule(o.Rule)
		if err != nil {
			return nil, err
		}
		o.Rules = append(o.Rules, rule)
	}
	return &o, nil
}

// rule returns an item with the settings for all pages where the item has none.
func (item *RecrawlRule) rule(rule recrawl.Rule) (recrawl.Rule, error) {
	rule.Interval = orElse(item.Interval, rule.Interval)
	rule.Min, rule.Max = orElse(item.MinInterval, rule.Min), orElse(item.MaxInterval, rule.Max)
	var err error
	if item.Policy != "" {
		if rule.Policy, err = recrawl.ParsePolicy(item.Policy); err != nil {
			return rule, err
		}
	}
	if item.Pattern != "" {
		if rule.Pattern, err = regexp.Compile(item.Pattern); err != nil {
			return rule, err
		}
	}
	rule.Hosts = hostPatterns(item.Hosts)
	return rule, nil
}

func (k *checker) recrawl() {
	r := k.c.Recrawl
	k.oneOf("recrawl.policy", r.Policy)
	if r.MinInterval > r.MaxInterval && !k.unsure("recrawl.max_interval") {
		k.conflict("recrawl.min_interval",
			fmt.Sprintf("is more than recrawl.max_interval, %s; want at most that", format(r.MaxInterval)))
	}
	k.recrawlRules()
}

func policies() (names []string) {
	for p := recrawl.Harmonic; p <= recrawl.Never; p++ {
		names = append(names, p.String())
	}
	return names
}

func (k *checker) recrawlRules() {
	const key = "recrawl.rules"
	if len(k.c.Recrawl.Rules) > 1000 {
		k.conflict(key, "want at most 1000 items; a pattern such as *.example.com stands for many hosts")
		return
	}
	for i, item := range k.c.Recrawl.Rules {
		reject := func(read, message string) { k.rejectItem(key, i, read, message) }
		if len(item.Hosts) == 0 && item.Pattern == "" {
			reject("item "+fmt.Sprint(i+1), "want hosts, or a pattern: a regular expression of path and query")
		}
		checkPatterns(item.Hosts, reject)
		if _, err := regexp.Compile(item.Pattern); err != nil {
			reject(item.Pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: ")+
				"; want a regular expression of Go (RE2)")
		}
		if _, err := recrawl.ParsePolicy(item.Policy); item.Policy != "" && err != nil {
			reject(item.Policy, "want one of "+strings.Join(policies(), ", "))
		}
		least, most := orElse(item.MinInterval, k.c.Recrawl.MinInterval),
			orElse(item.MaxInterval, k.c.Recrawl.MaxInterval)
		if least > most {
			reject("min_interval: "+format(least), "is more than max_interval, "+format(most)+"; want at most that")
		}
	}
}
