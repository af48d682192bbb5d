package crawl

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/netip"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/zoo"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// zooEnds is what the URL of each animal comes to: its state, its reason and the HTTP status, where
// it has them. Where a machine's timing decides which of several names is right, all are listed.
func zooEnds() map[string][]string {
	return map[string][]string{
		"silent": {"failed header_timeout"}, "header-drips": {"failed header_timeout"},
		"header-endless": {"failed header_too_large"}, "header-line-endless": {"failed header_too_large"},
		"header-name-endless": {"failed bad_response", "failed header_too_large"},
		"status-endless":      {"failed header_too_large"},
		"noise":               {"failed bad_response"}, "interim-flood": {"failed bad_response"},
		"interim-large":      {"failed header_too_large"},
		"switches-protocols": {"failed bad_response"}, "http-0.9": {"failed bad_response"},
		"speaks-ssh":  {"failed bad_response"},
		"speaks-smtp": {"failed bad_response"}, "status-text": {"failed bad_response"},
		"status-zero":  {"failed bad_response"},
		"status-large": {"failed bad_response"}, "status-999": {"failed status 999"},
		"version-9":   {"failed bad_response"},
		"two-lengths": {"failed bad_response"}, "negative-length": {"failed bad_response"},
		"length-overflow": {"failed bad_response"},
		"unasked-304":     {"failed bad_response"}, "unknown-transfer": {"failed bad_response"},
		"nul-in-header": {"failed bad_response"}, "no-colon": {"failed bad_response"},
		"closes-at-once": {"failed closed", "failed reset"}, "resets-at-once": {"failed reset", "failed closed"},
		"closes-after-request": {"failed closed"}, "closes-in-header": {"failed closed"},
		"resets-after-request": {"failed reset"}, "resets-in-header": {"failed reset"},

		"body-stalls": {"failed body_timeout"}, "body-drips": {"failed body_timeout"},
		"body-endless": {"fetched 200 cut"}, "body-endless-chunks": {"fetched 200 cut"},
		"body-huge-length": {"fetched 200 cut"},
		"body-short":       {"failed incomplete_body"}, "body-long": {"fetched 200"}, "body-smuggled": {"fetched 200"},
		"length-and-chunks": {"fetched 200"},
		"chunk-half":        {"failed incomplete_body"}, "chunk-last-missing": {"failed incomplete_body"},
		"chunk-bad-length":  {"failed incomplete_body"},
		"chunk-huge-length": {"failed incomplete_body"}, "chunk-extensions": {"failed incomplete_body"},
		"trailers-endless": {"failed incomplete_body"},
		"resets-in-body":   {"failed reset"}, "resets-in-large-body": {"failed reset"},

		"gzip-bomb": {"fetched 200 cut"}, "br-bomb": {"fetched 200 cut"}, "zstd-bomb": {"fetched 200 cut"},
		"gzip-in-gzip-bomb": {"fetched 200 cut"},
		"zstd-large-window": {"failed bad_encoding"}, "three-codings": {"failed bad_encoding"},
		"many-codings":   {"failed bad_encoding"},
		"unknown-coding": {"failed bad_encoding"}, "no-gzip": {"failed bad_encoding"},
		"no-zstd":  {"failed bad_encoding"},
		"gzip-cut": {"failed bad_encoding"}, "gzip-bad-sum": {"failed bad_encoding"},
		"gzip-then-noise":    {"fetched 200"},
		"gzip-empty-members": {"failed bad_encoding"},
		"wide-br":            {"failed bad_encoding"}, "hollow-zstd": {"failed bad_encoding"},
		"hollow-zstd-skippable": {"failed bad_encoding"},
		"hollow-zstd-blocks":    {"failed bad_encoding"}, "hollow-zstd-in-deflate": {"failed bad_encoding"},
		"hollow-gzip":            {"failed bad_encoding"},
		"hollow-gzip-in-deflate": {"failed bad_encoding"}, "hollow-deflate": {"failed bad_encoding"},
		"hollow-br":        {"failed bad_encoding"},
		"hollow-br-tables": {"failed bad_encoding"},

		"redirects-to-itself": {"failed loop 302"}, "redirects-to-file": {"failed location 302"},
		"redirects-to-gopher": {"failed location 302"},
		"redirects-to-script": {"failed location 302"}, "redirects-nowhere": {"failed location 302"},
		"redirects-to-no-url":   {"failed location 302"},
		"redirects-to-long-url": {"failed location 302"}, "redirects-to-private": {"redirected 302"},
		"redirects-to-metadata": {"redirected 302"},
		"redirects-to-mapped":   {"redirected 302"}, "redirects-to-decimal": {"redirected 302"},
		"redirect-chain": {"redirected 302"},
		"redirect-loop":  {"redirected 302"}, "redirect-grows": {"redirected 302"},
		"redirect-with-endless-body": {"redirected 301 cut"},
		"two-locations":              {"failed location 302"},

		"tls-stalls": {"failed tls_timeout"}, "tls-closes": {"failed tls", "failed reset"},
		"tls-resets": {"failed reset"}, "tls-is-http": {"failed tls"},
		"tls-noise": {"failed tls", "failed reset"}, "tls-alert": {"failed tls"}, "tls-old": {"failed tls"},
		"certificate-self-signed": {"failed certificate"}, "certificate-expired": {"failed certificate"},
		"certificate-wrong-host": {"failed certificate"},
		"h2-says-nothing":        {"failed header_timeout"}, "h2-is-http1": {"failed bad_response", "failed closed"},
		"h2-noise": {"failed bad_response", "failed closed", "failed reset"}, "h2-pings": {"failed bad_response"},
		"h2-goes-away":    {"failed closed"},
		"h2-status-65736": {"failed bad_response"}, "h2-status-word": {"failed bad_response"},
		"h2-two-lengths":  {"failed bad_response"},
		"h2-header-large": {"failed header_too_large"}, "h2-header-endless": {"failed header_too_large"},
		"h2-interim-flood":  {"failed bad_response"},
		"h2-unknown-frames": {"failed bad_response"}, "h2-settings-flood": {"failed bad_response"},
		"h2-empty-content": {"failed bad_response"},
		"tls-cut-body":     {"fetched 200"}, // as everybody reads it: too many servers end so
	}
}

// zooEnd is what animals come to that are not listed: pages, however odd, are pages.
func zooEnd(name string) []string {
	if ends, listed := zooEnds()[name]; listed {
		return ends
	}
	return []string{"fetched 200", "fetched 200 cut"}
}

// ended says what became of a URL, in the words of zooEnds.
func ended(o storage.Outcome, cut bool) string {
	text := o.State.String()
	if o.Reason != storage.ReasonNone {
		text += " " + inspect.ReasonName(o.Reason)
	}
	if o.Status != 0 {
		text += fmt.Sprintf(" %d", o.Status)
	}
	if cut {
		text += " cut"
	}
	return text
}

// networkOf is what a web listens on; nil: the loopback.
func networkOf(n *memnet.Network) testweb.Network {
	if n == nil {
		return nil
	}
	return n
}

// visitZoo crawls the animals that are picked, waiting so long for each, with a good host among
// them, and checks what holds for all: the good host is crawled whole, every URL has ended as it
// should, and the memory stayed in its bounds.
func visitZoo(t *testing.T, network *memnet.Network, patience time.Duration,
	pick func(name string) bool) (*zoo.Zoo, Options, map[string]storage.Outcome) {
	t.Helper()
	good := site("good.test", "", paths("/", 30), nil)
	web := testweb.Serve(t, testweb.Config{Network: networkOf(network), Sites: []testweb.Site{good}})
	z := newZoo(t, web)
	o := testOptions(t, web)
	o.Workers = 128
	o.GiveUpAfter = 5 * time.Minute // a slow machine may not answer a host at first
	o.Frontier.MaxAttempts, o.Frontier.RetryDelay = 2, 20*time.Millisecond
	o.Frontier.Politeness.PerIP = 256
	o.Frontier.Politeness.Delay = 5 * time.Millisecond
	o.Fetch.ConnectTimeout, o.Fetch.TLSTimeout, o.Fetch.HeaderTimeout, o.Fetch.BodyIdleTimeout = patience, patience,
		patience, patience
	o.Fetch.Timeout, o.Fetch.MaxBody, o.Fetch.TLSConfig = 3*patience, 12<<20/zooShrink, &tls.Config{RootCAs: z.Roots()}
	o.Fetch.CookieHosts = []fetch.HostPattern{"*"}
	o.Fetch.DenyRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16")}
	o.Traps = DefaultOptions().Traps

	seeds := []string{web.URL("good.test", "/")}
	var names []string
	for _, name := range z.Names() {
		if pick(name) {
			names, seeds = append(names, name), append(seeds, z.URL(name))
		}
	}
	watch := watchHeap()
	crawl(t, o, seeds...)
	assert.AtMost(t, watch(), 400<<20, "up MiB of memory were in use")

	all, lines := stored(t, o.DataDir), outputLines(t, o.Archive.Dir)
	for _, name := range names {
		u := seed(t, z.URL(name)).URL.String()
		got := ended(all[u], len(lines[u]) == 1 && lines[u][0].Truncated)
		assert.True(t, slices.Contains(zooEnd(name), got), "%s: %s is %q, want %q", name, u, got, zooEnd(name))
		assert.Not(t, z.Bitten(name), 0, name, "was not met")
	}
	details := make(map[string]bool)
	for u, outcome := range all {
		if outcome.Reason == reasonFor(fetch.KindBadResponse) {
			details[outcome.Note] = true
			if outcome.Note == "" || len(outcome.Note) > 120 || strings.ContainsFunc(outcome.Note, isNotPrintable) {
				t.Errorf("%s is a bad response, with the note %q", u, outcome.Note)
			}
		}
		assert.True(t, outcome.State != storage.Queued && outcome.State != storage.Retrying, "%s is still %s", u,
			outcome.State)
		assert.True(t, !strings.HasPrefix(u, web.URL("good.test", "/")) || outcome.State == storage.Fetched, "%s is %s",
			u, outcome.State)
	}
	if pick("speaks-ssh") && len(details) < 15 {
		t.Errorf("%d faults of bad responses are told apart, want 15 at least: %q", len(details),
			slices.Collect(maps.Keys(details)))
	}
	assert.Equal(t, len(web.Requests().Pages()), 31, "the good host was requested pages")
	checkOutput(t, o)
	return z, o, all
}

func isNotPrintable(r rune) bool { return r < ' ' || r > '~' }

// hostErrors is what the store has counted for hosts.
func hostErrors(t testing.TB, dir string, hosts ...string) (counts []map[string]uint32) {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	for _, name := range hosts {
		h := must.Get(s.HostByName(name))(t)
		m := make(map[string]uint32)
		for _, e := range h.Errors {
			m[inspect.ReasonName(e.Reason)] = e.Count
		}
		counts = append(counts, m)
	}
	return counts
}

// watchHeap notes how many bytes of memory the process has in use, until it is requested the most.
func watchHeap() (most func() uint64) {
	stop, result := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/heap/stacks:bytes"}}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				metrics.Read(sample)
				peak = max(peak, sample[0].Value.Uint64()+sample[1].Value.Uint64())
			case <-stop:
				result <- peak
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-result
	}
}

// newZoo adds a zoo to a web.
func newZoo(t testing.TB, web *testweb.Web) *zoo.Zoo {
	t.Helper()
	return must.Get(zoo.New(web, zoo.Config{Clock: zoo.Clock{Now: time.Now, Sleep: time.Sleep}, Shrink: zooShrink}))(t)
}

// stalls reports whether the end of an animal is a timeout.
func stalls(name string) bool { return strings.HasSuffix(zooEnd(name)[0], "_timeout") }

// TestZooOfStalls is TestHeavyZoo with the servers that wait, in virtual time.
func TestZooOfStalls(t *testing.T) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		visitZoo(t, network, time.Second, stalls)
	})
}

// TestHeavyZoo: whatever a server does, the crawl goes on, its memory stays in bounds, and the URL ends in
// the state that says what happened. The test runs alone, because the memory is that of the process.
// In real time, over the real network: what the kernel makes of broken connections counts.
func TestHeavyZoo(t *testing.T) {
	z, o, all := visitZoo(t, nil, 30*time.Second, func(name string) bool { return !stalls(name) })
	assert.AtLeast(t, len(z.Names()), 100, "animals")

	ends := map[string]string{
		"http://10.1.2.3/":                         "failed blocked_address",
		"http://169.254.169.254/latest/meta-data/": "failed blocked_address",
		"http://[::ffff:a01:203]/":                 "failed blocked_address",
	}
	chain, grown := seed(t, z.URL("redirect-chain")).URL.Origin(), seed(t, z.URL("redirect-grows")).URL.Origin()
	for i := range 5 {
		ends[chain.URL(fmt.Sprintf("/%d", i)).String()] = "redirected 302"
	}
	for i := range 3 { // then it is a trap
		ends[grown.URL(strings.Repeat("/x", i+1)).String()] = "redirected 302"
	}
	ends[chain.URL("/5").String()] = "failed redirects 302"
	loop := seed(t, z.URL("redirect-loop")).URL.Origin()
	ends[loop.URL("/a").String()], ends[loop.URL("/b").String()] = "redirected 302", "redirected 302"
	for _, name := range []string{"links-100000", "attribute-10MB", "nested-100000", "nested-lists",
		"unclosed-formatting", "tables-in-tables", "attributes-20000",
		"comment-endless", "script-unclosed", "nuls", "bad-utf-8", "unknown-charset", "charset-changes",
		"refresh-to-itself", "xml-entities", "cookies",
		"title-ends-at-bound", "tag-in-tag", "end-tags-deep-down", "rules-deep-down", "objects-then-misnesting",
		"attributes-then-end-tags", "attributes-then-attributes",
		"bodies", "templates", "hosts-of-many-scripts", "numbers-in-paths", "directives", "feed-of-nothing",
		"sitemap-of-dates",
		"sitemap-tag-in-tag", "robots-of-wildcards"} {
		ends[seed(t, z.URL(name)).URL.Origin().URL("/good").String()] = "fetched 200"
	}
	for _, name := range []string{"tls-answers-twice", "tls-answers-again", "tls-length-too-small",
		"h2-closes-at-second", "h2-refuses-second",
		// no page is lost, and none is taken for another
		"h2-goes-away-at-second", "h2-unknown-frames-later", "h2-content-later"} {
		origin := seed(t, z.URL(name)).URL.Origin()
		for i := range 20 {
			ends[origin.URL(fmt.Sprintf("/%d", i)).String()] = "fetched 200"
		}
		_, known := all[origin.URL("/forged").String()]
		assert.True(t, !known, "%s: an answer that nobody requested was taken", name)
		assert.Equal(t, len(hostErrors(t, o.DataDir, z.Host(name))[0]), 0, name, "counted errors")
	}
	denied := 0
	for u, o := range all {
		if strings.Contains(u, z.Host("robots-of-wildcards")) && strings.Contains(u, "/denied/") {
			if denied++; o.State != storage.Denied {
				t.Errorf("%s is %s, want denied", u, o.State)
			}
		}
	}
	assert.Equal(t, denied, 40, "URLs are denied by the robots.txt that takes long")
	counts := hostErrors(t, o.DataDir, z.Host("no-gzip"), z.Host("closes-after-request"), z.Host("gzip-then-noise"))
	assert.Equal(t, fmt.Sprint(counts), "[map[bad_encoding:1] map[closed:2] map[]]", "counted errors of hosts")
	for u, want := range ends {
		if o, known := all[u]; !known || ended(o, false) != want {
			t.Errorf("%s is %q (known: %v), want %q", u, ended(o, false), known, want)
		}
	}
	for name, most := range map[string]int{"calendar": 40, "sessions": 3, "redirect-grows": 3, "base-elsewhere": 2,
		"sitemap-entities": 2} {
		n := 0
		for u := range all {
			if strings.Contains(u, "//"+z.Host(name)+":") {
				n++
			}
		}
		assert.AtMost(t, n, most, name, "URLs")
	}
}

// TestNameThatChangesItsAnswer: a name server that says one address when it is requested what may
// be reached, and loopback to every later lookup, gets nobody to loopback: what was checked is what
// is dialled. In a later run the new answer is refused.
func TestNameThatChangesItsAnswer(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "first.test"}, site("rebind.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		o.Fetch.AllowPrivate = false
		public := web.Address("rebind.test") // stands for an address of the internet
		o.Fetch.AllowRanges = []netip.Prefix{netip.PrefixFrom(public, 32)}
		if public == web.Address("first.test") {
			t.Skip("this system has one loopback address only")
		}
		flipped := make(chan struct{})
		go func() {
			defer close(flipped)
			for web.Lookups("rebind.test") == 0 {
				time.Sleep(time.Millisecond)
			}
			web.SetAnswer("rebind.test", web.Address("first.test"))
		}()
		crawl(t, o, web.URL("rebind.test", "/"))
		<-flipped
		for _, q := range web.Requests() {
			assert.Equal(t, q.Address, public.String(), q.Host, q.Path, "was requested of")
		}
		assert.Equal(t, len(web.Requests().Pages()), 6, "pages")
		before := web.Served()
		crawl(t, o, web.URL("rebind.test", "/later"))
		assert.Equal(t, ended(stored(t, o.DataDir)[web.URL("rebind.test", "/later")], false), "failed blocked_address")
		assert.Equal(t, web.Served(), before, "an address that may not be reached was requested")
	})
}

// TestLostConnectionsCostNothing: requests that a kept connection lost, or a server gave back, cost
// neither an attempt at their URL nor the host its good name: with one attempt for each, all pages
// are fetched.
func TestLostConnectionsCostNothing(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{{Host: "good.test"}}})
		z := newZoo(t, web)
		o := testOptions(t, web)
		o.Frontier.MaxAttempts, o.Frontier.Politeness.PerIP = 1, 16
		o.Frontier.Politeness.Delay = 5 * time.Millisecond
		o.Fetch.TLSConfig = &tls.Config{RootCAs: z.Roots()}
		names := []string{"h2-closes-at-second", "h2-refuses-second", "h2-goes-away-at-second", "tls-answers-twice",
			"tls-length-too-small"}
		var seeds, hosts []string
		for _, name := range names {
			seeds, hosts = append(seeds, z.URL(name)), append(hosts, z.Host(name))
		}
		crawl(t, o, seeds...)
		fetched := make(map[string]int)
		for u, outcome := range stored(t, o.DataDir) {
			assert.Equal(t, ended(outcome, false), "fetched 200", u)
			fetched[seed(t, u).URL.Host()]++
		}
		for i, counts := range hostErrors(t, o.DataDir, hosts...) {
			assert.True(t, fetched[hosts[i]] == 21 && len(counts) == 0, "%s: %d pages, errors %v", hosts[i],
				fetched[hosts[i]], counts)
		}
	})
}
