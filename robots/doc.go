// Package robots reads robots.txt as RFC 9309 says, for one crawler: parse, match, explain, and what an HTTP outcome of
// the fetch of the file means. It does no I/O and reads no clock; time is an argument.
package robots
