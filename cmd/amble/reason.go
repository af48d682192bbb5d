package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
		"crash":            "amble itself failed on it: a bug, please report it (docs/OPERATING.md)",
		"wall":             "its host has put up a wall, or the response was a challenge (docs/POLITENESS.md)",
		"unknown":          "something else went wrong",
	}
}

// reasonText is a reason in words, with its name.
func reasonText(reason string) string {
	if text, known := reasonTexts()[reason]; known {
		return text + " (" + reason + ")"
	}
	return postponedReason(reason)
}

// mostShown is how many kinds countsText lists.
const mostShown = 4

// countsText lists counts, largest first: "3 status 404, 1 certificate".
func countsText(counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var list []string
	for _, name := range names[:min(len(names), mostShown)] {
		list = append(list, grouped(counts[name])+" "+name)
	}
	if more := len(names) - mostShown; more > 0 {
		list = append(list, fmt.Sprintf("%d other kinds", more))
	}
	return strings.Join(list, ", ")
}
