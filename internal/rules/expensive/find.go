package expensive

import (
	"slices"
	"strings"
)

// Products returns the products that a page names: by its generator, and the names of the cookies
// that it sets, as in the values of Set-Cookie.
func (l *List) Products(generator string, cookies []string) (found Products) {
	if generator == "" && len(cookies) == 0 {
		return 0
	}
	generator = strings.ToLower(generator[:min(len(generator), longestGenerator)])
	for i := range l.marks {
		m := &l.marks[i]
		if m.generator != "" && strings.HasPrefix(generator, m.generator) {
			found |= m.product
		}
		if m.cookie != "" && slices.ContainsFunc(cookies[:min(len(cookies), mostCookies)],
			func(c string) bool { return strings.HasPrefix(c, m.cookie) }) {
			found |= m.product
		}
	}
	return found
}

// What of a page is looked at.
const (
	longestGenerator = 64
	mostCookies      = 32
)

// Find returns the line by which a request target is expensive; nil: by none. on are the products of
// the page with the link. Its time is linear in the target.
func (l *List) Find(target string, on Products) *Line {
	path, query, _ := strings.Cut(target, "?")
	for i := 0; i < len(path); i++ {
		begin := i
		for i < len(path) && path[i] != '/' {
			i++
		}
		if segment := path[begin:i]; l.segments.mayHave(segment) {
			if n := l.segments.find(segment, path, query, on); n != nil {
				return n
			}
		}
	}
	if query == "" {
		return nil
	}
	for name := range parameters(query) {
		if !l.names.mayHave(name) {
			continue
		}
		if n := l.names.find(name, path, query, on); n != nil {
			return n
		}
	}
	return nil
}

// find returns the line that a target with a segment, or with a parameter of a name, is of.
func (x *index) find(text, path, query string, on Products) *Line {
	for _, key := range [...]string{text, text[:strings.IndexAny(text, x.marks)+1]} {
		for _, n := range x.lines[key] {
			if n.matches(path, query, on) {
				return n
			}
		}
	}
	return nil
}

func (n *Line) matches(path, query string, on Products) bool {
	if n.OnPage && on&n.product == 0 || len(n.path) > 0 && !n.hasPath(path) {
		return false
	}
	for i := range n.queries {
		if !n.queries[i].isIn(query) {
			return false
		}
	}
	if len(n.endings) > 0 &&
		!slices.ContainsFunc(n.endings, func(end string) bool { return strings.HasSuffix(path, end) }) {
		return false
	}
	return !n.commit || hasCommit(path) || hasCommit(query)
}

// hasPath reports whether a path has the segments in a row, behind as many others as depth says.
func (n *Line) hasPath(path string) bool {
	rest, ok := strings.TrimPrefix(path, "/"), true
	for depth := 0; ok; depth++ {
		if depth >= n.depth && n.startsWith(rest) {
			return true
		}
		_, rest, ok = strings.Cut(rest, "/")
	}
	return false
}

func (n *Line) startsWith(rest string) bool {
	for i, want := range n.path {
		segment, behind, more := strings.Cut(rest, "/")
		last := i == len(n.path)-1
		if segment != want && !(last && n.prefix && strings.HasPrefix(segment, want)) || !last && !more {
			return false
		}
		rest = behind
	}
	return true
}

func (p *parameter) isIn(query string) bool {
	for name, value := range parameters(query) {
		if (name == p.name || p.prefix && strings.HasPrefix(name, p.name)) && p.has(value) {
			return true
		}
	}
	return false
}

func (p *parameter) has(value string) bool {
	return p.values == nil || p.not != slices.ContainsFunc(p.values, func(want string) bool {
		if prefix, ok := strings.CutSuffix(want, "*"); ok {
			return strings.HasPrefix(value, prefix)
		}
		return value == want
	})
}

// parameters yields the parameters of a query, which & and ; separate.
func parameters(query string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		left := mostParameters
		for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
			name, value, _ := strings.Cut(part, "=")
			if left--; left < 0 || name != "" && !yield(name, value) {
				return
			}
		}
	}
}

// mostParameters of a query are looked at.
const mostParameters = 32

// hasCommit reports whether a text has the name of a commit: 40 or 64 hexadecimal digits in a row.
func hasCommit(text string) bool {
	run := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && isHex(text[i]) {
			run++
			continue
		}
		if run == 40 || run == 64 {
			return true
		}
		run = 0
	}
	return false
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
