package crawl

import (
	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/weburl"
)

// admit applies the rules for URLs to one that was found, and reports whether the result belongs to the crawl. Any goroutine may call it.
func (e *Engine) admit(scope *frontier.Scope, found weburl.URL) (weburl.URL, bool) {
	u, short := e.o.URLs.Apply(found)
	return u, short && scope.Check(u) == frontier.InScope
}
