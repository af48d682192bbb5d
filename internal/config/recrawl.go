package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/recrawl"
)

// Recrawl says when fetched pages are recrawled, by a crawl that does not end when it is done.
type Recrawl struct {
	Policy      string        `mapstructure:"policy"`       // harmonic, fixed, nutch, stormcrawler or never
	Interval    time.Duration `mapstructure:"interval"`     // of fixed; of nutch and stormcrawler after the first fetch
	MinInterval time.Duration `mapstructure:"min_interval"` // least time between two fetches of a page
	MaxInterval time.Duration `mapstructure:"max_interval"` // most time between two fetches of a page
	Budget      int           `mapstructure:"budget"`       // recrawls a day; 0: no limit
	// of the page requests that recrawls get if new URLs wait too
	Share       float64 `mapstructure:"share"`
	SimilarBits int     `mapstructure:"similar_bits"` // of a simhash that may differ; 0: the bodies must be equal
	// recrawls in a row that find a page gone before it is given up
	GoneAfter int           `mapstructure:"gone_after"`
	Rules     []RecrawlRule `mapstructure:"rules"` // pages with a policy of their own
}

// RecrawlRule gives pages a policy of their own. A nil or empty field is as for all pages.
type RecrawlRule struct {
	Hosts       []string       `mapstructure:"hosts"`   // names, and patterns such as *.example.com; none: every host
	Pattern     string         `mapstructure:"pattern"` // regular expression of path and query
	Policy      string         `mapstructure:"policy"`
	Interval    *time.Duration `mapstructure:"interval"`
	MinInterval *time.Duration `mapstructure:"min_interval"`
	MaxInterval *time.Duration `mapstructure:"max_interval"`
}

// defaultRecrawl has the defaults of internal/recrawl.
func defaultRecrawl(of *crawl.Options) Recrawl {
	o := recrawl.DefaultOptions()
	return Recrawl{
		Policy: o.Policy.String(), Interval: o.Interval, MinInterval: o.Min, MaxInterval: o.Max, Budget: int(o.Budget),
		Share: of.Frontier.RecrawlShare, SimilarBits: of.SimilarBits, GoneAfter: o.Missing, Rules: []RecrawlRule{},
	}
}

// RecrawlOptions returns the options of internal/recrawl, or nil if the crawl ends when it is done
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
	o := &recrawl.Options{
		Rule:   recrawl.Rule{Policy: policy, Interval: r.Interval, Min: r.MinInterval, Max: r.MaxInterval},
		Budget: float64(r.Budget), Missing: r.GoneAfter,
	}
	for _, item := range r.Rules {
		rule, err := item.rule(o.Rule)
		if err != nil {
			return nil, err
		}
		o.Rules = append(o.Rules, rule)
	}
	return o, nil
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
	for _, pattern := range item.Hosts {
		if canonical, ok := hostPattern(pattern); ok {
			rule.Hosts = append(rule.Hosts, canonical)
		}
	}
	return rule, nil
}

// Bounds of the times between two fetches of a page.
const (
	leastInterval = time.Second
	mostInterval  = 10 * 365 * 24 * time.Hour
)

func (k *checker) recrawl() {
	r := k.c.Recrawl
	k.oneOf("recrawl.policy", r.Policy)
	between(k, "recrawl.interval", r.Interval, leastInterval, mostInterval)
	between(k, "recrawl.min_interval", r.MinInterval, leastInterval, mostInterval)
	between(k, "recrawl.max_interval", r.MaxInterval, leastInterval, mostInterval)
	between(k, "recrawl.budget", r.Budget, 0, 1_000_000_000)
	between(k, "recrawl.share", r.Share, 0, 1)
	between(k, "recrawl.similar_bits", r.SimilarBits, 0, 32)
	between(k, "recrawl.gone_after", r.GoneAfter, 1, 100)
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
		for _, pattern := range item.Hosts {
			if _, ok := hostPattern(pattern); !ok {
				reject(pattern, "want the name of a host, such as www.example.com, or a pattern for all names below "+
					"one, such as *.example.com")
			}
		}
		if _, err := regexp.Compile(item.Pattern); err != nil {
			reject(item.Pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: ")+
				"; want a regular expression of Go (RE2)")
		}
		if _, err := recrawl.ParsePolicy(item.Policy); item.Policy != "" && err != nil {
			reject(item.Policy, "want one of "+strings.Join(policies(), ", "))
		}
		itemBetween(reject, "interval", item.Interval, leastInterval, mostInterval)
		itemBetween(reject, "min_interval", item.MinInterval, leastInterval, mostInterval)
		itemBetween(reject, "max_interval", item.MaxInterval, leastInterval, mostInterval)
		least, most := orElse(item.MinInterval, k.c.Recrawl.MinInterval),
			orElse(item.MaxInterval, k.c.Recrawl.MaxInterval)
		if least > most {
			reject("min_interval: "+format(least), "is more than max_interval, "+format(most)+"; want at most that")
		}
	}
}
