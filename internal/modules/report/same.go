//go:build !core

package report

import (
	"reflect"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Same gives URLs that a crawl takes for the same the same text. The links in the output are as the pages have them.
type Same func(url string) string

// NewSame returns the Same of a crawl with these settings of urls, and these names of session ids.
func NewSame(rules weburl.Rules, names []string) Same {
	sessions := frontier.NewSessions(names)
	plain := rules
	plain.MaxLength = 0
	noRules := reflect.ValueOf(plain).IsZero() || reflect.DeepEqual(plain, weburl.Rules{StripParameters: []string{}})
	return func(text string) string {
		if noRules && strings.IndexByte(text, '=') < 0 { // nearly all
			return text
		}
		u, err := weburl.Parse(text)
		if err != nil {
			return text
		}
		u, _ = rules.Apply(u)
		if stripped, has := sessions.Strip(u.RequestURI()); has {
			u = u.Origin().URL(stripped)
		}
		return u.String()
	}
}
