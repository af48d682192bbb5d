// Package robots reads robots.txt as RFC 9309 says, for one crawler: parse, match, explain, and what an HTTP outcome of
// the fetch of the file means. It does no I/O and reads no clock; time is an argument, and so is chance.
//
//   - Compile turns a file into Rules: what it says to one crawler, immutable and compact. Rules.Match answers for one URL
//     without allocating.
//   - Parse turns a file into a File: everything that it says, with line numbers and warnings, for people and tools.
//     File.Explain says why a URL is allowed or not, and Diff what changed between two files.
//   - Options.Next is the state machine of the fetch: from the Record of what was known and the Outcome of a request to
//     the next Record. Options.Standing says what a Record means for page requests at one instant. Record.AppendBinary and
//     DecodeRecord store it.
//
// Every function may be called by any number of goroutines. Nobody may change a Record's Body, or the body given to Parse.
//
// docs/ROBOTS.md says what the rules mean, where RFC 9309 leaves a choice, and how it differs from the standard of 1994.
//
// Reading order: lines.go and field.go (a file as records), token.go (whose they are), normal.go (what is compared),
// compile.go and build.go (what is kept), match.go (the verdict); then record.go, next.go and standing.go.
package robots
