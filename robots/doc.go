// Package robots reads robots.txt files as RFC 9309 says: it parses a file, matches URLs against
// it, explains each verdict, and tracks how the file of an origin is fetched, cached and retried.
// It does no I/O and reads no clock: time and chance are arguments.
//
// # Use
//
// Compile a file for one crawler, and match each URL before it is fetched:
//
//	rules := robots.Compile(body, "examplebot")
//	if rules.MatchURL("https://example.com/search?q=tea").Allowed {
//		// fetch it
//	}
//	delay, ok := rules.CrawlDelay()
//
// The package has three parts:
//
//   - [Compile] makes [Rules], the part of a file that is for one crawler. Rules are compact.
//     [Rules.Match] does not allocate for URLs of up to 2,048 octets.
//   - [Parse] makes a [File], everything that a file says, with line numbers and warnings, for
//     people and tools. [File.Text] quotes the line behind a verdict, [File.Sitemaps] lists the
//     sitemaps, and [Diff] compares two files.
//   - [Options.Next] is the state machine of the fetch. It takes the last [Record] of an origin and
//     the [Outcome] of a request, and returns the next Record. [Options.Decide] decides what a
//     Record means for the pages of the origin at one instant: fetch robots.txt first, hold the
//     origin, or match the rules. [Record.AppendBinary] and [DecodeRecord] store a Record.
//
// # Concurrency
//
// Any number of goroutines may call any function and method of this package at a time. In return, a
// caller changes neither the body passed to [Parse], nor the Body of a Record or a HistoryEntry, nor
// anything that a [File] or [Rules] returned.
//
// # Hostile files
//
// A file is untrusted. At most [MaxBody] octets are read, no file is an error, and no pattern makes
// a match slower than the product of the length of the URL and the number of patterns with a star.
//
// # Sources
//
//   - RFC 9309, Robots Exclusion Protocol: https://www.rfc-editor.org/rfc/rfc9309
//   - The standard of 1994, where files are written for it: https://www.robotstxt.org/orig.html.
//     RFC 9309 wins where the two differ.
//   - Content-Usage is from draft-ietf-aipref-attach, License from Really Simple Licensing 1.0,
//     Content-Signal from contentsignals.org.
//   - Crawl-delay, Request-rate, Visit-time, Clean-param and Host are extensions.
//
// docs/ROBOTS.md gives an example of each rule, of each choice that RFC 9309 leaves, and of each
// difference from 1994.
//
// # Reading order
//
// Start with lines.go and field.go (a file as records), token.go (the groups of a crawler),
// normal.go (the normal form), compile.go and build.go (what Rules keep), and match.go (the
// verdict); then record.go, next.go and decision.go.
package robots
