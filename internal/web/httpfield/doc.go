// Package httpfield reads the values of HTTP header fields: seconds, dates, waits, links,
// and the line that counts if a server sends a field on several lines. Its functions are pure.
package httpfield
