package sweep

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Lift is a setting that decides about URLs, and which of them a more generous value puts back.
type Lift struct {
	setting string
	value   string                          // in force
	looser  func(before, after string) bool // nil: every other value is
	states  storage.States                  // of the URLs that it decides about
	// lifts reports whether the setting had decided about a URL in one of these states, and may no
	// longer.
	lifts func(*storage.Located) bool
}

// Settings are what decides about URLs: the options in force, and the scope.
type Settings struct {
	Fetch            *fetch.Options
	Frontier         *frontier.Options
	Mode             frontier.Mode
	Include, Exclude []*regexp.Regexp
	Consent          consent.Policy
	MazePages        int // traps.maze_pages
	Scope            *frontier.Scope
	Rules            StoredRules
	Mark             func(name string) ([]byte, error) // what the store has; nil: nothing
}

// mayHaveMore reports whether pages of a seed may be fetched, by the count that the store has.
func (s *Settings) mayHaveMore(m *seeds.Member) bool {
	if m == nil || m.MaxPages == 0 || s.Mark == nil {
		return true
	}
	value, err := s.Mark(frontier.MarkSeedPages + m.Root.String())
	n, _ := strconv.ParseUint(string(value), 10, 32)
	return err == nil && n < uint64(m.MaxPages)
}

// Lifts returns all of them.
func (s *Settings) Lifts() []Lift {
	return slices.Concat(s.reachLifts(), s.requestLifts(), s.patienceLifts(), s.scopeLifts(), s.robotsLifts(),
		s.consentLifts())
}

// reachLifts returns the lifts of settings about where a request may lead.
func (s *Settings) reachLifts() []Lift {
	o, failed := s.Fetch, storage.In(storage.Failed)
	blocked := failedBy(fetch.KindBlockedAddress)
	nameFailures := failedBy(fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout,
		fetch.KindBlockedAddress)
	reached := failedBy(fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout, fetch.KindBlockedAddress,
		fetch.KindRefused, fetch.KindUnreachable, fetch.KindConnectTimeout, fetch.KindProxy)
	return []Lift{
		{"fetch.allow_private", strconv.FormatBool(o.AllowPrivate), becomes("true"), failed, blocked},
		{"fetch.allow_addresses", listed(o.AllowRanges), gains, failed, blocked},
		{"fetch.deny_addresses", listed(o.DenyRanges), loses, failed, blocked},
		// An empty list leaves out the ports that browsers refuse.
		{"fetch.ports", listed(o.Ports), nil, failed, blocked},
		{"fetch.resolver", o.Resolver, nil, failed, nameFailures},
		{"fetch.addresses", o.Family.String(), nil, failed, reached},
		{"fetch.proxy", o.Proxy, nil, failed, reached},
	}
}

// requestLifts returns the lifts of settings about which responses are good.
func (s *Settings) requestLifts() []Lift {
	o, failed, redirects := s.Fetch, storage.In(storage.Failed), s.Frontier.MaxRedirects
	credential := func(l *storage.Located) bool {
		refused := l.Last.Reason == storage.ReasonStatus && (l.Last.Status == 401 || l.Last.Status == 403)
		return refused &&
			slices.ContainsFunc(o.Credentials, func(c fetch.Credential) bool { return c.Matches(l.URL()) })
	}
	return []Lift{
		{"fetch.tls_ca_file", fileDigest(o.CAFile), nil, failed, failedBy(fetch.KindCertificate)},
		{"fetch.auth", listed(o.Credentials), gains, failed, credential},
		{"fetch.cookies", listed(o.CookieHosts), gains, failed, because(storage.ReasonLoop)},
		{"fetch.content_types", listed(o.ContentTypes), opens, failed, failedBy(fetch.KindTypeNotWanted)},
		{"fetch.max_header", number(o.MaxHeader), grows, failed, failedBy(fetch.KindHeaderTooLarge)},
		{"fetch.max_redirects", number(redirects), grows, failed, func(l *storage.Located) bool {
			return l.Last.Reason == storage.ReasonRedirects && l.Redirects < redirects
		}},
	}
}

// liftedRobots returns the failures of a robots.txt that a more generous value of a setting may
// end: its origin is not held for them any longer.
func liftedRobots(setting string) []robots.Failure {
	switch setting {
	case "fetch.allow_private", "fetch.allow_addresses", "fetch.deny_addresses", "fetch.ports":
		return []robots.Failure{robots.FailureBlocked}
	case "fetch.resolver", "fetch.addresses", "fetch.proxy":
		return []robots.Failure{robots.FailureBlocked, robots.FailureDNS, robots.FailureConnect, robots.FailureTimeout}
	case "fetch.tls_ca_file":
		return []robots.Failure{robots.FailureTLS}
	case "fetch.max_header":
		return []robots.Failure{robots.FailureProtocol}
	case "fetch.timeout", "fetch.connect_timeout", "fetch.header_timeout", "fetch.idle_timeout", "fetch.min_rate":
		return []robots.Failure{robots.FailureTimeout}
	}
	return nil
}

// patienceLifts returns the lifts of settings about how long, and how often, a response is waited
// for.
func (s *Settings) patienceLifts() []Lift {
	o, failed, attempts := s.Fetch, storage.In(storage.Failed), s.Frontier.MaxAttempts
	connect := failedBy(fetch.KindConnectTimeout, fetch.KindTLSTimeout)
	timeout := failedBy(fetch.KindConnectTimeout, fetch.KindTLSTimeout, fetch.KindHeaderTimeout, fetch.KindBodyTimeout)
	return []Lift{
		{"fetch.timeout", number(o.Timeout), grows, failed, timeout},
		{"fetch.connect_timeout", number(o.ConnectTimeout), grows, failed, connect},
		{"fetch.header_timeout", number(o.HeaderTimeout), grows, failed, failedBy(fetch.KindHeaderTimeout)},
		{"fetch.idle_timeout", number(o.BodyIdleTimeout), grows, failed, failedBy(fetch.KindBodyTimeout)},
		{"fetch.min_rate", number(-o.MinRate), grows, failed, failedBy(fetch.KindTooSlow)},
		{"fetch.resolve_timeout", number(o.ResolveTimeout), grows, failed, failedBy(fetch.KindDNSTimeout)},
		{"retry.max_attempts", number(attempts), grows, failed, func(l *storage.Located) bool {
			return l.Last.Attempts > 0 && l.Last.Attempts < attempts && isTemporary(&l.Last)
		}},
	}
}

// scopeLifts returns the lifts of settings about which URLs belong to the crawl.
func (s *Settings) scopeLifts() []Lift {
	scope, depth, excluded := s.Scope, s.Frontier.MaxDepth, storage.In(storage.Excluded)
	inScope := func(l *storage.Located) bool {
		reason, u := l.Last.Reason, l.URL()
		return (reason == storage.ReasonScope || reason == storage.ReasonChecked && !scope.OnlyChecks(u, &l.Entry)) &&
			scope.CheckHead(u, &l.Entry) == frontier.InScope
	}
	inDepth := func(l *storage.Located) bool {
		m := scope.Seeds().Of(l.URL(), frontier.RefOf(&l.Entry))
		return l.Last.Reason == storage.ReasonDepth && m.Depth(depth) >= l.Depth
	}
	inPages := func(l *storage.Located) bool {
		return l.Last.Reason == storage.ReasonSeedPages &&
			s.mayHaveMore(scope.Seeds().Of(l.URL(), frontier.RefOf(&l.Entry)))
	}
	redirected := func(l *storage.Located) bool { // its target is not known any more
		return l.Last.State == storage.Redirected && l.Last.Reason == storage.ReasonScope
	}
	deepest := int64(depth)
	if depth == 0 {
		deepest = math.MaxInt64
	}
	value := fmt.Sprint(s.Mode, s.Include, s.Exclude)
	if scope.ChecksOutside() {
		value += " outside"
	}
	value = digestOf(value)
	return []Lift{
		{"scope", value, nil, excluded | storage.In(storage.Redirected),
			func(l *storage.Located) bool { return inScope(l) || redirected(l) }},
		{"crawl.seeds", strconv.FormatUint(scope.Seeds().Sum(), 16), nil, excluded, func(l *storage.Located) bool {
			return inScope(l) || inDepth(l) || inPages(l)
		}},
		{"crawl.max_depth", number(deepest), grows, excluded, inDepth},
	}
}

// robotsLifts returns the lifts of settings about how robots.txt is read.
func (s *Settings) robotsLifts() []Lift {
	o, denied := s.Frontier, storage.In(storage.Denied)
	return []Lift{
		{"robots.obey", strconv.FormatBool(o.Obey), becomes("false"), denied, because(storage.ReasonRobots)},
		{"robots.product_token", strings.Join(o.Tokens, " "), nil, denied, s.allowedNow()},
	}
}

// consentLifts returns the lifts of settings about what people do not want to be crawled, or used.
func (s *Settings) consentLifts() []Lift {
	var names []string
	for _, e := range s.Scope.OptOuts().All() {
		names = append(names, string(e.Scope)+" "+e.Value)
	}
	return []Lift{
		{"traps.maze_pages", number(s.MazePages), nil, storage.In(storage.Denied), because(storage.ReasonMaze)},
		{"consent.optout", listed(names), loses, storage.In(storage.Excluded, storage.Redirected),
			func(l *storage.Located) bool {
				_, covered := s.Scope.OptOut(l.URL())
				return l.Last.Reason == storage.ReasonOptOut && !covered
			}},
		{"consent.policy", fmt.Sprint(s.Consent), nil, storage.In(storage.Denied), because(storage.ReasonUsage)},
	}
}

// allowedNow returns a function that reports whether the stored robots.txt of its origin allows a
// denied URL, or cannot be read: then the frontier decides. It keeps the rules of one host.
func (s *Settings) allowedNow() func(*storage.Located) bool {
	host, rules := storage.NoHost, map[uint8]*robots.Rules{}
	return func(l *storage.Located) bool {
		if l.Host.ID != host {
			host = l.Host.ID
			clear(rules)
		}
		known, read := rules[l.Origin]
		if !read {
			known, _ = s.Rules(host, l.Origin)
			rules[l.Origin] = known
		}
		return known == nil || known.Match(l.RequestURI).Allowed
	}
}

func failedBy(kinds ...fetch.Kind) func(*storage.Located) bool {
	return func(l *storage.Located) bool {
		r := l.Last.Reason
		return r >= storage.ReasonFetch && slices.Contains(kinds, fetch.Kind(r-storage.ReasonFetch))
	}
}

func because(r storage.Reason) func(*storage.Located) bool {
	return func(l *storage.Located) bool { return l.Last.Reason == r }
}

// isTemporary reports whether a failure is one that is tried again.
func isTemporary(o *storage.Outcome) bool {
	if o.Reason == storage.ReasonStatus {
		return httpfield.IsTemporary(int(o.Status))
	}
	return o.Reason >= storage.ReasonFetch && fetch.Kind(o.Reason-storage.ReasonFetch).Temporary()
}
