package crawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// lift is a setting that decides about URLs, and which of them a more generous value puts back.
type lift struct {
	setting string
	value   string                          // in force
	looser  func(before, after string) bool // nil: every other value is
	states  storage.States                  // of the URLs that it decides about
	// lifts reports whether the setting had decided about a URL in one of these states, and may no
	// longer.
	lifts func(*storage.Located) bool
}

// liftSource is what decides about URLs: the options, those in force, and the scope.
type liftSource struct {
	o     *Options
	live  *inForce
	scope *frontier.Scope
	seeds int // that the scope was made of at the start of the run
	rules *rulesReader
}

// lifts returns all of them.
func (s *liftSource) lifts() []lift {
	return slices.Concat(s.reachLifts(), s.requestLifts(), s.patienceLifts(), s.scopeLifts(), s.robotsLifts(),
		[]lift{s.optOutLift(), s.consentLift()})
}

// reachLifts returns the lifts of settings about where a request may lead.
func (s *liftSource) reachLifts() []lift {
	o, failed := &s.o.Fetch, storage.In(storage.Failed)
	blocked := failedBy(fetch.KindBlockedAddress)
	nameFailures := failedBy(fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout,
		fetch.KindBlockedAddress)
	reached := failedBy(fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout, fetch.KindBlockedAddress,
		fetch.KindRefused, fetch.KindUnreachable, fetch.KindConnectTimeout, fetch.KindProxy)
	return []lift{
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
func (s *liftSource) requestLifts() []lift {
	o, failed, redirects := &s.o.Fetch, storage.In(storage.Failed), s.o.Frontier.MaxRedirects
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
func (s *liftSource) patienceLifts() []lift {
	o, failed, attempts := &s.o.Fetch, storage.In(storage.Failed), s.o.Frontier.MaxAttempts
	connect := failedBy(fetch.KindConnectTimeout, fetch.KindTLSTimeout)
	timeout := failedBy(fetch.KindConnectTimeout, fetch.KindTLSTimeout, fetch.KindHeaderTimeout, fetch.KindBodyTimeout)
	return []lift{
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
func (s *liftSource) scopeLifts() []lift {
	scope, depth, excluded := s.scope, s.o.Frontier.MaxDepth, storage.In(storage.Excluded)
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
	deepest := int64(depth)
	if depth == 0 {
		deepest = math.MaxInt64
	}
	value := digestOf(fmt.Sprint(s.o.Mode, s.live.Include, s.live.Exclude))
	return []lift{
		{"scope", value, nil, excluded | storage.In(storage.Redirected),
			func(l *storage.Located) bool { return inScope(l) || redirected(l) }},
		{"crawl.seeds", number(s.seeds), grows, excluded, inScope},
		{"crawl.max_depth", number(deepest), grows, excluded, func(l *storage.Located) bool {
			return l.Last.Reason == storage.ReasonDepth && (depth == 0 || l.Depth <= depth)
		}},
	}
}

// robotsLifts returns the lifts of settings about how robots.txt is read.
func (s *liftSource) robotsLifts() []lift {
	o, denied := &s.o.Frontier, storage.In(storage.Denied)
	return []lift{
		{"robots.obey", strconv.FormatBool(o.Obey), becomes("false"), denied, because(storage.ReasonRobots)},
		{"robots.product_token", strings.Join(o.Tokens, " "), nil, denied, s.allowedNow()},
	}
}

// allowedNow returns a function that reports whether the stored robots.txt of its origin allows a
// denied URL, or cannot be read: then the frontier decides. It keeps the rules of one host.
func (s *liftSource) allowedNow() func(*storage.Located) bool {
	host, rules := storage.NoHost, map[uint8]*robots.Rules{}
	return func(l *storage.Located) bool {
		if l.Host.ID != host {
			host = l.Host.ID
			clear(rules)
		}
		known, read := rules[l.Origin]
		if !read {
			known, _ = s.rules.stored(host, l.Origin)
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
		return retriedStatus(int(o.Status))
	}
	return o.Reason >= storage.ReasonFetch && fetch.Kind(o.Reason-storage.ReasonFetch).Temporary()
}

// Values of settings are compared as texts. A list has an item a line; a very long one is a digest.

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

// gains reports whether a list has an item that it did not have.
func gains(before, after string) bool {
	if strings.HasPrefix(before, digestPrefix) || strings.HasPrefix(after, digestPrefix) {
		return true
	}
	had := strings.Split(before, "\n")
	isNew := func(item string) bool { return !slices.Contains(had, item) }
	return after != "" && slices.ContainsFunc(strings.Split(after, "\n"), isNew)
}

func loses(before, after string) bool { return gains(after, before) }

// opens is gains for a list that means all if it is empty.
func opens(before, after string) bool { return before != "" && (after == "" || gains(before, after)) }

// settingValues are the values of the settings that decide about URLs, by setting, as the store
// keeps them. They are compared with those in force at the start of a run, and when settings change
// during one. If one has become more generous, a retry puts back the URLs whose reason may be gone.
// Values that a store of an earlier version did not keep lift nothing.
type settingValues map[string]string

// markSettings is the name of their mark: one JSON object.
const markSettings = "decided"

// valuesOf returns those in force.
func valuesOf(lifts []lift) settingValues {
	v := make(settingValues, len(lifts))
	for i := range lifts {
		v[lifts[i].setting] = lifts[i].value
	}
	return v
}

// lifted returns the settings that have become more generous since and decide about URLs in states
// that there are, and the failures of robots.txt files that may be gone.
func (v settingValues) lifted(lifts []lift, c storage.Counters) (settings []string, failures []robots.Failure) {
	for i := range lifts {
		l := &lifts[i]
		before, known := v[l.setting]
		if !known || before == l.value || l.looser != nil && !l.looser(before, l.value) {
			continue
		}
		failures = append(failures, liftedRobots(l.setting)...)
		if c.Any(l.states) {
			settings = append(settings, l.setting)
		}
	}
	return settings, failures
}

func (v settingValues) encode() []byte {
	b, _ := json.Marshal(v) // of texts
	return b
}

// keptSettings are the settings in force that decide about URLs, and those that the store keeps. The
// engine owns them before a run, then the dispatcher.
type keptSettings struct {
	o     *Options
	live  *atomic.Pointer[inForce]
	scope *atomic.Pointer[frontier.Scope]
	seeds int // that the scope was made of at the start of the run
	rules *rulesReader
	kept  settingValues
}

// lifts returns all lifts for the options in force.
func (k *keptSettings) lifts() []lift {
	source := liftSource{o: k.o, live: k.live.Load(), scope: k.scope.Load(), seeds: k.seeds, rules: k.rules}
	return source.lifts()
}

// update takes over the values in force, given the counts of URLs by state. If any has changed, it
// returns the value of the mark, the settings that have become more generous and the failures of
// robots.txt files that may be gone; else nil.
func (k *keptSettings) update(c storage.Counters) (mark []byte, lifted []string, failures []robots.Failure) {
	lifts := k.lifts()
	now := valuesOf(lifts)
	if maps.Equal(k.kept, now) {
		return nil, nil, nil
	}
	lifted, failures = k.kept.lifted(lifts, c)
	k.kept = now
	return now.encode(), lifted, failures
}

// reconsider begins, on disk, a retry of what settings have lifted since they were kept; the
// dispatcher finds it there. seeds is how many the scope is made of. It returns the settings as they
// are kept now, and the failures of robots.txt files that may be gone.
func (e *Engine) reconsider(ctx context.Context, seeds int) (*keptSettings, []robots.Failure, error) {
	encoded, err := e.store.Mark(markSettings)
	if err != nil {
		return nil, nil, err
	}
	k := &keptSettings{o: &e.o, live: &e.live, scope: &e.scope, seeds: seeds, rules: e.rulesReader()}
	if len(encoded) > 0 {
		if err := json.Unmarshal(encoded, &k.kept); err != nil {
			return nil, nil, fmt.Errorf("mark %s: %w: %w", markSettings, storage.ErrCorrupt, err)
		}
	}
	mark, lifted, forgiven := k.update(e.store.Counters())
	if mark == nil {
		return k, nil, nil
	}
	b := storage.Batch{Marks: map[string][]byte{markSettings: mark}}
	if len(lifted) > 0 {
		last, err := lastRetry(e.store)
		if err != nil {
			return nil, nil, err
		}
		b.Marks[retryMark(last+1)] = retryCommand{Lifted: lifted}.encode()
		logLifted(e.log, lifted)
	}
	if _, err := e.commitAtStart(ctx, &b); err != nil {
		return nil, nil, fmt.Errorf("keep the settings that decide about URLs: %w", err)
	}
	return k, forgiven, nil
}

// reconsider is Engine.reconsider for settings that change while the crawl runs.
func (d *dispatcher) reconsider() {
	// No setting that can change now is about robots.txt files.
	mark, lifted, _ := d.settings.update(d.store.Counters())
	if mark == nil {
		return
	}
	d.pending.setMark(markSettings, mark)
	if len(lifted) == 0 {
		return
	}
	logLifted(d.log, lifted)
	if r, err := newRetry(d.store, retryCommand{Lifted: lifted}, d.settings.lifts()); err != nil {
		d.fail(err)
	} else {
		d.sweeps.addRetry(r, d.pending)
	}
}

func logLifted(log *slog.Logger, settings []string) {
	log.Info("settings are more generous than before: URLs that they had left out are looked at again",
		"settings", settings)
}
