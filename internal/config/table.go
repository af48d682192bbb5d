package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
)

// The table of the settings is [Config]: a field is a setting. Its tags say
//
//	mapstructure  its name in its section
//	range         the numbers that it may be: "1..10", or with one more "0|1..10"
//	of            the words that it may be
//	default       its default, if it is not that of an option that it is bound to
//	is            live: a change takes effect while a crawl runs
//	              shared: all nodes of a cluster have it in common: that of the cluster is in force
//	              agreed: all nodes of a cluster have to agree on it: a node with another value does not join
//	              secret: its value is not printed
//	              file: it changes by the config file alone while a crawl runs. Secrets are not sent over the API, and
//	              its clients could read files otherwise; seeds have operations of their own
//	              path: of a file or a directory
//
// config.yaml at the root of the repository says the same to people; tests compare both. What else a value has to be,
// and what pairs of them, is in the file of the section.

// is reports whether the tag "is" of a setting has a word.
func (s setting) is(what string) bool { return slices.Contains(strings.Fields(s.tag.Get("is")), what) }

// binding is a setting that goes into an option as it is. Both are pointers.
type binding struct{ setting, option any }

// bound returns the settings that go into options of the crawl and of its recrawls as they are. The defaults of such
// settings are those of the options.
func (c *Config) bound(o *crawl.Options, r *recrawl.Options) []binding {
	f, p := &o.Frontier, &o.Frontier.Politeness
	return []binding{
		{&c.Crawl.Workers, &o.Workers}, {&c.Crawl.MaxRate, &o.MaxRate}, {&c.Crawl.ExitWhenDone, &o.ExitWhenDone},
		{&c.Crawl.GiveUpAfter, &o.GiveUpAfter}, {&c.Crawl.ShutdownGrace, &o.ShutdownGrace},
		{&c.Crawl.MaxPages, &o.MaxPages}, {&c.Crawl.MaxBytes, &o.MaxBytes}, {&c.Crawl.MaxTime, &o.MaxTime},
		{&c.Crawl.MaxDepth, &f.MaxDepth}, {&c.Scope.CheckOutside, &o.CheckOutside},
		{&c.Limits.HostURLs, &o.Storage.MaxHostURLs}, {&c.Limits.HostPages, &f.HostBudget},
		{&c.Limits.DomainPages, &f.DomainBudget}, {&c.Limits.Session, &f.Session},

		{&c.URLs.SortQuery, &o.URLs.SortQuery}, {&c.URLs.DropEmptyQuery, &o.URLs.DropEmptyQuery},
		{&c.URLs.CollapseSlashes, &o.URLs.CollapseSlashes}, {&c.URLs.NormalizeEscapes, &o.URLs.NormalizeEscapes},
		{&c.URLs.MaxLength, &o.URLs.MaxLength},

		{&c.Traps.PathDepth, &o.Traps.PathDepth}, {&c.Traps.RepeatedSegments, &o.Traps.RepeatedSegments},
		{&c.Traps.QueryParameters, &o.Traps.QueryParameters}, {&c.Traps.QueriesPerPath, &o.Storage.MaxQueries},
		{&c.Traps.SameDigest, &o.Storage.MaxSameDigest}, {&c.Traps.Calendar, &o.Traps.Calendar},
		{&c.Traps.Refresh, &o.Traps.Refresh}, {&c.Traps.MazePages, &o.Traps.MazePages},
		{&c.Traps.DomainHosts, &o.MaxDomainHosts},
		{&c.Robots.Obey, &f.Obey}, {&c.Robots.ObeyNoFollow, &o.NoFollow},
		{&c.Robots.ForbiddenDenies, &f.Robots.ForbiddenDenies},

		{&c.Politeness.Delay, &p.Delay}, {&c.Politeness.AdaptiveFactor, &p.AdaptiveFactor},
		{&c.Politeness.AdaptiveMax, &p.AdaptiveMax}, {&c.Politeness.PerHost, &p.PerHost},
		{&c.Politeness.HostBandwidth, &p.Bandwidth}, {&c.Politeness.PerIP, &p.PerIP},
		{&c.Politeness.IPDelay, &p.IPDelay}, {&c.Politeness.IPRate, &p.IPRate},
		{&c.Politeness.PerDomain, &f.Domain.InFlight}, {&c.Politeness.DomainDelay, &f.Domain.Delay},
		{&c.Politeness.Walls, &f.Walls},

		{&c.Fetch.Timeout, &o.Fetch.Timeout}, {&c.Fetch.ConnectTimeout, &o.Fetch.ConnectTimeout},
		{&c.Fetch.HeaderTimeout, &o.Fetch.HeaderTimeout}, {&c.Fetch.IdleTimeout, &o.Fetch.BodyIdleTimeout},
		{&c.Fetch.ResolveTimeout, &o.Fetch.ResolveTimeout}, {&c.Fetch.MinRate, &o.Fetch.MinRate},
		{&c.Fetch.Bandwidth, &o.Bandwidth}, {&c.Fetch.MaxHeader, &o.Fetch.MaxHeader},
		{&c.Fetch.MaxBody, &o.Fetch.MaxBody}, {&c.Fetch.SpoolAbove, &o.Spool.Above},
		{&c.Fetch.MemoryBudget, &o.Spool.Budget}, {&c.Fetch.MaxRedirects, &f.MaxRedirects},
		{&c.Fetch.HTTP2, &o.Fetch.HTTP2}, {&c.Fetch.AllowPrivate, &o.Fetch.AllowPrivate},
		{&c.Fetch.Resolver, &o.Fetch.Resolver}, {&c.Fetch.Resolvers, &f.Resolvers},
		{&c.Fetch.Proxy, &o.Fetch.Proxy}, {&c.Fetch.ProxyAuth, &o.Fetch.ProxyAuth},
		{&c.Fetch.TLSCAFile, &o.Fetch.CAFile},

		{&c.Extract.Media, &o.Extract.Media}, {&c.Extract.Forms, &o.Extract.Forms},
		{&c.Extract.MaxLinks, &o.Extract.MaxLinks}, {&c.Extract.MaxDepth, &o.Extract.MaxDepth},
		{&c.Sitemaps.Follow, &o.Sitemaps.Follow}, {&c.Sitemaps.Guess, &o.Sitemaps.Guess},
		{&c.Sitemaps.Feeds, &o.Sitemaps.Feeds}, {&c.Sitemaps.MaxFiles, &f.MaxSitemaps},
		{&c.Sitemaps.MaxURLs, &o.Sitemaps.Lists.MaxItems}, {&c.Sitemaps.MaxSize, &o.Sitemaps.Lists.MaxBytes},
		{&c.Retry.MaxAttempts, &f.MaxAttempts}, {&c.Retry.Delay, &f.RetryDelay},
		{&c.Recrawl.Interval, &r.Interval}, {&c.Recrawl.MinInterval, &r.Min}, {&c.Recrawl.MaxInterval, &r.Max},
		{&c.Recrawl.Budget, &r.Budget}, {&c.Recrawl.Share, &f.RecrawlShare},
		{&c.Recrawl.SimilarBits, &o.SimilarBits}, {&c.Recrawl.GoneAfter, &r.Missing},
		{&c.Consent.TDMRep, &o.TDMFiles}, {&c.Consent.RSL, &o.Terms},
		{&c.Storage.MaxSize, &o.Storage.MaxBytes}, {&c.Storage.MinFree, &o.MinFree},
		{&c.Storage.BackupEvery, &o.BackupEvery},

		{&c.Output.Format, &o.Archive.Formats}, {&c.Output.Compress, &o.Archive.Compress},
		{&c.Output.WARC, &o.Archive.Records.Format}, {&c.Output.MaxFile, &o.Archive.MaxFileBytes},
		{&c.Output.MaxAge, &o.Archive.MaxFileAge}, {&c.Output.Prefix, &o.Archive.Prefix},
		{&c.Output.GzipLevel, &o.Archive.Records.Level}, {&c.Output.ZstdDictionary, &o.Archive.DictionaryFile},
		{&c.Output.Outlinks, &o.Archive.Outlinks}, {&c.Output.Webhook.Queue, &o.Archive.Queue},
		{&c.Archive.Requisites, &o.Requisites.Fetch}, {&c.Archive.PerPage, &o.Requisites.PerPage},
		{&c.Archive.Dedupe, &o.Archive.Dedupe}, {&c.Archive.DedupeDelay, &o.Archive.DedupeDelay},
		{&c.Audit.MaxSize, &o.Requests.MaxSize}, {&c.Audit.Keep, &o.Requests.Keep},
	}
}

// assign sets what to points to to what from points to.
func assign(to, from any) {
	target := reflect.ValueOf(to).Elem()
	target.Set(reflect.ValueOf(from).Elem().Convert(target.Type()))
}

// options returns the options of the crawl and of its recrawls, with the settings that are bound to them.
func (c *Config) options() (o crawl.Options, r recrawl.Options) {
	o, r = crawl.DefaultOptions(), recrawl.DefaultOptions()
	for _, b := range c.bound(&o, &r) {
		assign(b.option, b.setting)
	}
	return o, r
}

// Default returns the default settings: those of the options that they are bound to, or their own.
func Default() Config {
	var c Config
	o, r := crawl.DefaultOptions(), recrawl.DefaultOptions()
	for _, b := range c.bound(&o, &r) {
		assign(b.setting, b.option)
	}
	for _, s := range settings() {
		field := s.field(&c)
		if text, own := s.tag.Lookup("default"); own {
			value, err := parseAs(s.typ, text)
			if err != nil {
				panic("the default of " + s.key + " is no value of it")
			}
			field.Set(reflect.ValueOf(value))
		} else if s.isList() && field.IsNil() {
			field.Set(reflect.MakeSlice(s.typ, 0, 0))
		}
	}
	return c
}

// outside returns what a number may be, by the tag range of its setting; empty: it is within that.
func outside(tag string, v reflect.Value) (want string) {
	zero, within, alone := strings.Cut(tag, "|")
	if !alone {
		within = tag
	} else if v.IsZero() {
		return ""
	}
	least, most, _ := strings.Cut(within, "..")
	switch {
	case compare(v, least) >= 0 && compare(v, most) <= 0:
		return ""
	case alone:
		return "want " + zero + ", or " + least + " to " + most
	}
	return "want " + least + " to " + most
}

// compare compares a number with a bound.
func compare(v reflect.Value, bound string) int {
	b, err := parseAs(v.Type(), bound)
	if err != nil {
		panic("a setting has the bound " + bound)
	}
	if v.CanFloat() {
		return cmp.Compare(v.Float(), reflect.ValueOf(b).Float())
	}
	return cmp.Compare(v.Int(), reflect.ValueOf(b).Int())
}

// table checks what the table says of values alone.
func (k *checker) table() {
	for _, s := range k.words.settings {
		if tag := s.tag.Get("range"); tag != "" {
			if want := outside(tag, s.field(k.c)); want != "" {
				k.reject(s.key, want)
			}
		}
		if s.tag.Get("of") != "" {
			k.oneOf(s.key, s.field(k.c).String())
		}
	}
}

// items checks what the table says of the items of lists.
func (k *checker) items() {
	for _, s := range k.words.settings {
		if s.isItems() {
			list := s.field(k.c)
			for i := range list.Len() {
				k.item(s.key, i, list.Index(i))
			}
		}
	}
}

// item checks the numbers of an item of a list.
func (k *checker) item(key string, i int, item reflect.Value) {
	for n := range item.NumField() {
		field, tag := item.Type().Field(n), item.Type().Field(n).Tag
		v := reflect.Indirect(item.Field(n)) // a nil pointer: the item does not have it
		if tag.Get("range") == "" || !v.IsValid() {
			continue
		}
		if want := outside(tag.Get("range"), v); want != "" {
			k.rejectItem(key, i, field.Tag.Get("mapstructure")+": "+format(v.Interface()), want)
		}
	}
}
