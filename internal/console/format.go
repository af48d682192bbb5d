package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
)

// Grouped formats a count with commas: 1,234,567.
func Grouped[N int | uint64](n N) string {
	text := strconv.FormatUint(uint64(max(n, 0)), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Plural formats a count and its noun: 1 page, 2 pages.
func Plural[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(n) + " " + noun + "s"
}

// Size formats bytes in the unit that keeps it short: 512 B, 1.6 MiB.
func Size[N uint64 | float64](n N) string {
	value, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1023.95 {
			break
		}
		value, unit = value/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%.0f B", value)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// Percent formats a fraction, or a dash if it is not known.
func Percent(part *float64) string {
	if part == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100**part)
}

// Unchanged says how many recrawls there were, which part of them found nothing new, and what that cost.
func Unchanged(y recrawl.Yield) string {
	if y.Recrawls == 0 {
		return "0"
	}
	part := float64(y.Unchanged) / float64(y.Recrawls)
	return fmt.Sprintf("%s, %s unchanged (%s received)", Grouped(y.Recrawls), Percent(&part), Size(y.UnchangedBytes))
}

// Span formats a duration by its two largest units: 0s, 14s, 2m 5s, 1h 4m, 3d 2h.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	seconds := int(max(d, 0).Round(time.Second) / time.Second)
	switch d := time.Duration(seconds) * time.Second; {
	case d < time.Minute:
		return fmt.Sprintf("%ds", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", seconds/60, seconds%60)
	case d < day:
		return fmt.Sprintf("%dh %dm", seconds/3600, seconds/60%60)
	default:
		return fmt.Sprintf("%dd %dh", seconds/86400, seconds/3600%24)
	}
}

// InstantText formats a time for people: the clock time today, otherwise with the date.
func InstantText(t, now time.Time) string {
	t = t.Local()
	if y, m, d := now.Local().Date(); t.Year() == y && t.Month() == m && t.Day() == d {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// reasonTexts say what each reason of docs/ERRORS.md means, in a few words.
func reasonTexts() map[string]string {
	return map[string]string{
		"status":        "its status is an error",
		"robots":        "robots.txt disallows it",
		"scope":         "it is outside the scope",
		"depth":         "it is deeper than crawl.max_depth",
		"redirects":     "too many redirects in a row",
		"location":      "it redirects to nothing that can be fetched",
		"operator":      "the operator dropped it",
		"loop":          "it redirects to itself",
		"dns_not_found": "the name has no address",
		"dns_failure":   "the name servers gave no usable answer",
		"dns_timeout":   "the name servers did not answer in time",
		"blocked_address": "the address or the port may not be reached: fetch.allow_private, " +
			"fetch.allow_addresses, fetch.deny_addresses, fetch.ports",
		"refused":          "nothing listens at the address",
		"unreachable":      "there is no route to the address",
		"connect_timeout":  "the connection was not made in time",
		"tls":              "the TLS handshake failed",
		"certificate":      "the certificate is not valid for the host",
		"tls_timeout":      "the TLS handshake did not end in time",
		"reset":            "the connection was reset",
		"closed":           "the server closed the connection",
		"lost_on_reuse":    "a kept connection broke",
		"signature_asked":  "the server asks for a signature",
		"header_timeout":   "the response header did not arrive in time",
		"header_too_large": "the response header is longer than fetch.max_header",
		"bad_response":     "the response is not HTTP",
		"body_timeout":     "the body did not end in time",
		"too_slow":         "its server was too slow: fetch.min_rate, or others needed the worker",
		"incomplete_body":  "the body ended before its announced end",
		"bad_encoding":     "the content encoding cannot be decoded",
		"type_not_wanted":  "its type is not among fetch.content_types",
		"proxy":            "the proxy could not be reached, or did not connect",
		"unsupported":      "the request cannot be sent as it is",
		"local":            "this machine lacked descriptors, ports or disk space",
		"canceled":         "the crawl ended meanwhile",
		"opt_out":          "its site wishes to be left alone: amble optout list says why",
		"usage":            "consent.policy, by what its site says about the use of its content (docs/CONSENT.md)",
		"lease_lost":       "the leases of fetchers ran out without a report (docs/FETCHERS.md)",
		"sitemaps":         "its host has had as many sitemaps as it may (sitemaps.max_files, limits.host_pages)",
		"checked":          "it is outside the scope, and answered when it was checked (scope.check_outside)",
		"seed_pages":       "its seed has as many pages as max_pages allows",
		"maze":             "its part of the host goes on for ever (docs/TRAPS.md)",
		"crash":            "amble itself failed on it: a bug, please report it (docs/OPERATING.md)",
		"wall":             "its host has put up a wall, or the response was a challenge (docs/POLITENESS.md)",
		"unknown":          "something else went wrong",
	}
}

// ReasonText is a reason in words, with its name.
func ReasonText(reason string) string {
	if text, known := reasonTexts()[reason]; known {
		return text + " (" + reason + ")"
	}
	return PostponedReason(reason)
}

// mostShown is how many kinds countsText lists.
const mostShown = 4

// CountsText lists counts, largest first: "3 status 404, 1 certificate".
func CountsText[N int | uint64](counts map[string]N) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var list []string
	for _, name := range names[:min(len(names), mostShown)] {
		list = append(list, Grouped(uint64(counts[name]))+" "+name)
	}
	if more := len(names) - mostShown; more > 0 {
		list = append(list, fmt.Sprintf("%d other kinds", more))
	}
	return strings.Join(list, ", ")
}

// PostponedReason explains the one-word reasons of politeness and robots.
func PostponedReason(reason string) string {
	words := map[string]string{
		"budget":                  "its pages are spent: limits.host_pages or limits.domain_pages",
		"delay":                   "its turn comes later",
		"crawl-delay":             "Crawl-delay of its robots.txt",
		"adaptive":                "it answers slowly",
		"errors":                  "requests to it failed",
		"retry-after":             "it demanded a pause (Retry-After)",
		"back-off":                "it refused or failed repeatedly",
		"restart":                 "requests of an earlier run may have reached it",
		"request-rate":            "Request-rate of its robots.txt",
		"visit-time":              "Visit-time of its robots.txt: outside of its hours",
		"pause":                   "paused by the operator",
		"lookup":                  "its name is being looked up",
		"loading":                 "its queue is being read",
		"request":                 "a request is in flight",
		"set-delay":               "the delay set by the operator",
		"start":                   "its turn comes later",
		"wall":                    "it has put up a wall: amble hosts HOST says which",
		"parked: wall":            "parked: its wall has not ended; it is probed once a day",
		"limit":                   "a shared limit of its address, group or domain",
		"rate-limit":              "nothing is left of its quota (RateLimit)",
		"rate-policy":             "a quota of its server (RateLimit-Policy)",
		"hours":                   "outside of politeness.hours",
		"parked: hours":           "parked: politeness.hours and its Visit-time have no hour in common",
		"parked: retry-after":     "parked: it demanded a pause of more than a week (Retry-After)",
		"parked: rate-limit":      "parked: its quota is reset in more than a week (RateLimit)",
		"parked: rate-policy":     "parked: its quota allows a request in more than a week (RateLimit-Policy)",
		"robots.txt: rule":        "its robots.txt disallows everything",
		"robots.txt: unreachable": "its robots.txt cannot be read",
		"robots.txt: forbidden":   "its robots.txt is forbidden",
	}
	if text, known := words[reason]; known {
		return text
	}
	return reason
}

// WriteTable writes rows of columns, each as wide as its widest cell, indented by two.
func WriteTable(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, cells := range rows {
		line := " "
		for i, cell := range cells {
			line += " " + fmt.Sprintf("%-*s", widths[i]+1, cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func Are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return Plural(n, noun) + " are"
}

func Were[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return Plural(n, noun) + " were"
}
