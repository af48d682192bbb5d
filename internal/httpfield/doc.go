// Package httpfield reads what header fields of HTTP say: seconds, dates, how long to wait, and what
// counts where a server sends a field on several lines. Its functions are pure.
package httpfield
