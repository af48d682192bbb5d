// Package optout holds the wishes of people that their content be left alone: hosts, domains, ranges of
// addresses and prefixes of URLs that are never fetched from, whatever else is configured.
//
// A [List] is immutable and may be used concurrently. An entry that ends is in force until that
// instant; the caller gives the time.
package optout
