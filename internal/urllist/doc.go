// Package urllist reads lists of URLs of any length: one a line, as text or as a JSON object, plain or packed with gzip or zstd,
// which is told by the content. One line is held at a time, and a bad one is reported with its number and does not end the list.
//
// A line of text is a URL. Empty lines are left out, and so is what follows a # at the start of a line or after white space. A line
// that begins with a brace is a JSON object with the members url, depth and priority, of which only the first must be there; others
// are ignored, so that the lines of an export can be read again.
package urllist
