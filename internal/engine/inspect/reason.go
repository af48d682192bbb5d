package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// reasonNames are the names of the reasons that are not fetch errors, by number.
func reasonNames() []string {
	return []string{
		storage.ReasonNone:      "",
		storage.ReasonStatus:    "status",
		storage.ReasonRobots:    "robots",
		storage.ReasonScope:     "scope",
		storage.ReasonDepth:     "depth",
		storage.ReasonRedirects: "redirects",
		storage.ReasonLocation:  "location",
		storage.ReasonOperator:  "operator",
		storage.ReasonLoop:      "loop",
		storage.ReasonCrash:     "crash",
		storage.ReasonWall:      "wall",
		storage.ReasonOptOut:    "opt_out",
		storage.ReasonUsage:     "usage",
		storage.ReasonLeaseLost: "lease_lost",
		storage.ReasonSitemaps:  "sitemaps",
		storage.ReasonMaze:      "maze",
		storage.ReasonSeedPages: "seed_pages",
		storage.ReasonChecked:   "checked",
	}
}

// ReasonName returns the name of a reason. For a fetch error it is the name of its kind, such as
// "connect_timeout"; for ReasonNone it is empty.
func ReasonName(r storage.Reason) string {
	if r >= storage.ReasonFetch {
		return fetch.Kind(r - storage.ReasonFetch).String()
	}
	if names := reasonNames(); int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason_%d", r)
}

// CauseName says in one word or two why a request or a lookup failed: "status 503", or the name of
// a reason; empty if it is not known.
func CauseName(c storage.Cause) string {
	if status := c.Status(); status > 0 {
		return fmt.Sprintf("status %d", status)
	}
	return ReasonName(c.Reason())
}

// ReasonNames returns all names that ParseReason knows.
func ReasonNames() []string {
	names := reasonNames()[1:]
	for k := fetch.Kind(0); !strings.HasPrefix(k.String(), "kind_"); k++ {
		names = append(names, k.String())
	}
	return names
}

// ParseReason is the inverse of ReasonName.
func ParseReason(name string) (storage.Reason, error) {
	known := ReasonNames()
	at := slices.Index(known, name)
	if at < 0 {
		return 0, fmt.Errorf("%q is not a reason (allowed: %s)", name, strings.Join(known, ", "))
	}
	if own := len(reasonNames()) - 1; at >= own {
		return storage.ReasonFetch + storage.Reason(at-own), nil
	}
	return storage.Reason(at + 1), nil
}
