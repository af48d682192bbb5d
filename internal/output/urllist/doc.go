// Package urllist reads lists of URLs of any length, one a line, as text or as JSON objects, plain
// or compressed with gzip or zstd. It recognises the format by the content. It holds one line at a
// time. It reports a bad line with its number and continues with the next.
//
// A line of text is a URL, or a host, with fields such as priority=5 or tags=news behind it. Empty lines are ignored,
// and so is a # at the start of a line or after white space, with the text after it. A line that begins with a brace is
// a JSON object with the members url, depth and those fields. Only url is required. Other members are ignored, so that
// the lines of an export can be read again. Package seeds says what the fields are.
package urllist
