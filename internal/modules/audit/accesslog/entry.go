// Package accesslog compares the access log of a site with the request log of a crawl, line by line.
package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// entry is one line of an access log in the common or the combined format of Apache and nginx.
type entry struct {
	number int // of the line
	at     time.Time
	target string // path and query
	status int
	agent  string // empty in the common format
}

// timeLayout is that of both formats.
const timeLayout = "02/Jan/2006:15:04:05 -0700"

// parse reads a line:
//
//	192.0.2.7 - - [27/Nov/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 200 512 "referer" "agent"
//
// A host name before the address, as some sites log it, is skipped.
func parse(line string) (e entry, ok bool) {
	_, rest, ok := strings.Cut(line, "[")
	if !ok {
		return e, false
	}
	stamp, rest, ok := strings.Cut(rest, "]")
	if !ok {
		return e, false
	}
	var err error
	if e.at, err = time.Parse(timeLayout, stamp); err != nil {
		return e, false
	}
	request, rest, ok := quoted(rest)
	if !ok {
		return e, false
	}
	method, target, _ := strings.Cut(request, " ")
	if method != "GET" {
		return e, false
	}
	e.target, _, _ = strings.Cut(target, " ")
	status, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if e.status, err = strconv.Atoi(status); err != nil || e.status < 100 || e.status > 999 {
		return e, false
	}
	if _, rest, ok = quoted(rest); ok { // the referer
		e.agent, _, _ = quoted(rest)
	}
	return e, e.target != ""
}

// quoted returns the first text in quotes, with the escapes of Apache and nginx, and what is behind it.
func quoted(s string) (text, rest string, ok bool) {
	begin := strings.IndexByte(s, '"')
	if begin < 0 {
		return "", "", false
	}
	var b strings.Builder
	for i := begin + 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x':
			n, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
			if err != nil {
				return "", "", false
			}
			b.WriteByte(byte(n))
			i += 3
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
