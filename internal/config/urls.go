package config

import "github.com/amble-crawler/amble/internal/weburl"

// URLs says which URLs are taken for one beyond their canonical form.
type URLs struct {
	StripParameters  []string `mapstructure:"strip_parameters"`  // removed from queries
	SortQuery        bool     `mapstructure:"sort_query"`        // parameters in the order of their names
	DropEmptyQuery   bool     `mapstructure:"drop_empty_query"`  // no ? with nothing behind it
	CollapseSlashes  bool     `mapstructure:"collapse_slashes"`  // one slash for several
	NormalizeEscapes bool     `mapstructure:"normalize_escapes"` // %7e is ~, %2f is %2F
	MaxLength        int      `mapstructure:"max_length"`        // in bytes
}

func defaultURLs() URLs { return URLs{StripParameters: []string{}, MaxLength: weburl.MaxLength} }

// urls checks the section.
func (k *checker) urls() {
	between(k, "urls.max_length", k.c.URLs.MaxLength, 64, weburl.MaxLength)
	for i, name := range k.c.URLs.StripParameters {
		if !isParameter(name) {
			k.rejectItem("urls.strip_parameters", i, name, "want the name of a parameter of a URL, such as gclid, or the begin of one and a star, such as utm_*")
		}
	}
}

// URLRules are the rules for URLs.
func (c *Config) URLRules() weburl.Rules {
	u := c.URLs
	return weburl.Rules{
		StripParameters: append([]string(nil), u.StripParameters...), SortQuery: u.SortQuery, DropEmptyQuery: u.DropEmptyQuery,
		CollapseSlashes: u.CollapseSlashes, NormalizeEscapes: u.NormalizeEscapes, MaxLength: u.MaxLength,
	}
}
