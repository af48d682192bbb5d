package crawl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// A lift is a setting that decides about URLs, and which of them a more generous value of it offers again.
type lift struct {
	setting string
	value   string                          // in force
	looser  func(before, after string) bool // nil: every other value is
	states  storage.States                  // of the URLs that it decides about
	lifts   func(*storage.Located) bool     // whether the setting had decided about a URL in one of these states, and may no longer
}

// lifts are all of them, for the options in force.
func (e *Engine) lifts() []lift {
	return slices.Concat(e.reachLifts(), e.requestLifts(), e.patienceLifts(), e.scopeLifts(), e.robotsLifts())
}

// reachLifts are about where a request may lead.
func (e *Engine) reachLifts() []lift {
	o, failed := &e.o.Fetch, storage.In(storage.Failed)
	blocked := failedBy(fetch.KindBlockedAddress)
	named := failedBy(fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout, fetch.KindBlockedAddress)
	reached := failedBy(fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout, fetch.KindBlockedAddress,
		fetch.KindRefused, fetch.KindUnreachable, fetch.KindConnectTimeout, fetch.KindProxy)
	return []lift{
		{"fetch.allow_private", strconv.FormatBool(o.AllowPrivate), becomes("true"), failed, blocked},
		{"fetch.allow_addresses", listed(o.AllowRanges), gains, failed, blocked},
		{"fetch.deny_addresses", listed(o.DenyRanges), loses, failed, blocked},
		{"fetch.ports", listed(o.Ports), nil, failed, blocked}, // an empty list leaves out the ports that browsers refuse
		{"fetch.resolver", o.Resolver, nil, failed, named},
		{"fetch.addresses", o.Family.String(), nil, failed, reached},
		{"fetch.proxy", o.Proxy, nil, failed, reached},
	}
}

// requestLifts are about what is taken for a good answer.
func (e *Engine) requestLifts() []lift {
	o, failed, redirects := &e.o.Fetch, storage.In(storage.Failed), e.o.Frontier.MaxRedirects
	credential := func(l *storage.Located) bool {
		refused := l.Last.Reason == storage.ReasonStatus && (l.Last.Status == 401 || l.Last.Status == 403)
		return refused && slices.ContainsFunc(o.Credentials, func(c fetch.Credential) bool { return c.Matches(l.URL) })
	}
	return []lift{
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

// liftedRobots are the failures of a robots.txt that a more generous value of a setting may end: its origin is not held for them any longer.
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

// patienceLifts are about how long, and how often, an answer is waited for.
func (e *Engine) patienceLifts() []lift {
	o, failed, attempts := &e.o.Fetch, storage.In(storage.Failed), e.o.Frontier.MaxAttempts
	return []lift{
		{"fetch.timeout", number(o.Timeout), grows, failed, failedBy(fetch.KindConnectTimeout, fetch.KindTLSTimeout, fetch.KindHeaderTimeout, fetch.KindBodyTimeout)},
		{"fetch.connect_timeout", number(o.ConnectTimeout), grows, failed, failedBy(fetch.KindConnectTimeout, fetch.KindTLSTimeout)},
		{"fetch.header_timeout", number(o.HeaderTimeout), grows, failed, failedBy(fetch.KindHeaderTimeout)},
		{"fetch.idle_timeout", number(o.BodyIdleTimeout), grows, failed, failedBy(fetch.KindBodyTimeout)},
		{"fetch.min_rate", number(-o.MinRate), grows, failed, failedBy(fetch.KindTooSlow)},
		{"fetch.resolve_timeout", number(o.ResolveTimeout), grows, failed, failedBy(fetch.KindDNSTimeout)},
		{"retry.max_attempts", number(attempts), grows, failed, func(l *storage.Located) bool {
			return l.Last.Attempts > 0 && l.Last.Attempts < attempts && mayPass(&l.Last)
		}},
	}
}

// scopeLifts are about which URLs belong to the crawl.
func (e *Engine) scopeLifts() []lift {
	scope, depth, excluded := e.scope.Load(), e.o.Frontier.MaxDepth, storage.In(storage.Excluded)
	inScope := func(l *storage.Located) bool {
		check := scope.Check
		if l.Sitemap {
			check = scope.CheckSitemap
		}
		return l.Last.Reason == storage.ReasonScope && check(l.URL) == frontier.InScope
	}
	redirected := func(l *storage.Located) bool { // its target is not known any more
		return l.Last.State == storage.Redirected && l.Last.Reason == storage.ReasonScope
	}
	force := e.force.Load()
	deepest := int64(depth)
	if depth == 0 {
		deepest = math.MaxInt64
	}
	return []lift{
		{"scope", digestOf(fmt.Sprint(e.o.Mode, force.Include, force.Exclude)), nil, excluded | storage.In(storage.Redirected),
			func(l *storage.Located) bool { return inScope(l) || redirected(l) }},
		{"crawl.seeds", number(e.scopeSeeds), grows, excluded, inScope},
		{"crawl.max_depth", number(deepest), grows, excluded, func(l *storage.Located) bool {
			return l.Last.Reason == storage.ReasonDepth && (depth == 0 || l.Depth <= depth)
		}},
	}
}

// robotsLifts are about how robots.txt is read.
func (e *Engine) robotsLifts() []lift {
	o, denied := &e.o.Frontier, storage.In(storage.Denied)
	return []lift{
		{"robots.obey", strconv.FormatBool(o.Obey), becomes("false"), denied, because(storage.ReasonRobots)},
		{"robots.product_token", strings.Join(o.Tokens, " "), nil, denied, e.allowedNow()},
	}
}

// allowedNow reports of denied URLs whether the stored robots.txt of their origin allows them. Where that cannot be said the frontier will.
// It keeps the rules of one host.
func (e *Engine) allowedNow() func(*storage.Located) bool {
	host, rules := storage.NoHost, map[uint8]*robots.Rules{}
	return func(l *storage.Located) bool {
		if l.Host.ID != host {
			host = l.Host.ID
			clear(rules)
		}
		known, read := rules[l.Origin]
		if !read {
			known, _ = e.storedRules(host, l.Origin)
			rules[l.Origin] = known
		}
		return known == nil || known.Match(l.RequestURI).Allowed
	}
}

func failedBy(kinds ...fetch.Kind) func(*storage.Located) bool {
	return func(l *storage.Located) bool {
		return l.Last.Reason >= storage.ReasonFetch && slices.Contains(kinds, fetch.Kind(l.Last.Reason-storage.ReasonFetch))
	}
}

func because(r storage.Reason) func(*storage.Located) bool {
	return func(l *storage.Located) bool { return l.Last.Reason == r }
}

// mayPass reports whether a failure is one that is tried again.
func mayPass(o *storage.Outcome) bool {
	if o.Reason == storage.ReasonStatus {
		return retriedStatus(int(o.Status))
	}
	return o.Reason >= storage.ReasonFetch && fetch.Kind(o.Reason-storage.ReasonFetch).Temporary()
}

// Values of settings are compared as texts. A list has an item a line; one that is very long is a digest.

const longestValue = 4 << 10

func number[N ~uint8 | ~int | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func listed[T any](list []T) string {
	var b strings.Builder
	for i := range list {
		fmt.Fprintf(&b, "%v\n", list[i])
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) > longestValue {
		return digestOf(text)
	}
	return text
}

const digestPrefix = "sha256:"

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return digestPrefix + hex.EncodeToString(sum[:])
}

// fileDigest is that of a file's content. A file that cannot be read ends the start elsewhere.
func fileDigest(name string) string {
	content, err := os.ReadFile(name)
	if name == "" || err != nil {
		return ""
	}
	return digestOf(string(content))
}

// becomes reports whether a value is this one now.
func becomes(value string) func(before, after string) bool {
	return func(_, after string) bool { return after == value }
}

// grows compares numbers.
func grows(before, after string) bool {
	a, err := strconv.ParseInt(before, 10, 64)
	b, err2 := strconv.ParseInt(after, 10, 64)
	return err == nil && err2 == nil && b > a
}

// gains reports whether a list has an item that it had not.
func gains(before, after string) bool {
	if strings.HasPrefix(before, digestPrefix) || strings.HasPrefix(after, digestPrefix) {
		return true
	}
	had := strings.Split(before, "\n")
	return after != "" && slices.ContainsFunc(strings.Split(after, "\n"), func(item string) bool { return !slices.Contains(had, item) })
}

func loses(before, after string) bool { return gains(after, before) }

// opens is gains for a list that means all where it is empty.
func opens(before, after string) bool { return before != "" && (after == "" || gains(before, after)) }
