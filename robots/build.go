package robots

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// build lays out the rules for matching: patterns in normal form, literals sorted with a link to
// their longest prefix, wildcards by descending length.
func build(text []byte, rules []rule) *Rules {
	b := builder{normal: make([]byte, 0, patternBytes(rules)), items: make([]item, 0, len(rules))}
	for _, r := range rules {
		b.add(text[r.start:r.end], r.line)
	}
	literals, wildcards := b.items[:b.literals], b.items[b.literals:]
	b.sortLiterals(literals, 0)
	literals = b.dedupe(literals)
	b.sortWildcards(wildcards)

	r := &Rules{
		reason:  ReasonNoRule,
		denyAll: b.disallowAll > b.longestAllow,
	}
	if len(literals)+len(wildcards) == 0 {
		return r
	}
	r.text = make([]byte, 0, b.total(literals)+b.total(wildcards))
	r.literals = make([]literal, 0, len(literals))
	for _, it := range literals {
		r.addLiteral(b.pattern(it), it.line)
	}
	if len(wildcards) > 0 {
		r.wildcards = make([]wildcard, 0, len(wildcards))
		for _, it := range wildcards {
			r.addWildcard(b.pattern(it), it.line)
		}
	}
	return r
}

// addLiteral appends a literal that sorts after all others.
func (r *Rules) addLiteral(pattern []byte, line lineAllow) {
	up := int32(len(r.literals)) - 1
	for up >= 0 && !bytes.HasPrefix(pattern, r.literal(up)) {
		up = r.literals[up].up
	}
	r.text = append(r.text, pattern...)
	r.literals = append(r.literals, literal{end: uint32(len(r.text)), up: up, line: line})
}

func (r *Rules) addWildcard(pattern []byte, line lineAllow) {
	r.text = append(r.text, pattern...)
	r.wildcards = append(r.wildcards, wildcard{end: uint32(len(r.text)), line: line, probe: probes(pattern)})
}

func patternBytes(rules []rule) int {
	n := 0
	for _, r := range rules {
		n += int(r.end - r.start)
	}
	return n
}

// item is a rule that is being sorted.
type item struct {
	key        uint64 // the current sort key
	start, end uint32 // of the pattern in builder.normal
	line       lineAllow
}

type builder struct {
	normal       []byte
	items        []item // literals, then wildcards
	literals     int
	disallowAll  int // longest pattern that disallows every URL
	longestAllow int
}

func (b *builder) pattern(it item) []byte { return b.normal[it.start:it.end] }

func (b *builder) total(items []item) int {
	n := 0
	for _, it := range items {
		n += int(it.end - it.start)
	}
	return n
}

// add adds one rule, unless its pattern starts with neither a slash nor a star: that matches no
// URL.
func (b *builder) add(pattern []byte, line lineAllow) {
	if pattern[0] != '/' && pattern[0] != '*' {
		return
	}
	start := len(b.normal)
	b.normal = appendPattern(b.normal, pattern)
	p := b.normal[start:]
	if line.allow() {
		b.longestAllow = max(b.longestAllow, len(p))
	} else if matchesAll(p) {
		b.disallowAll = max(b.disallowAll, len(p))
	}
	it := item{start: uint32(start), end: uint32(len(b.normal)), line: line}
	b.items = append(b.items, it)
	if bytes.IndexByte(p, '*') < 0 {
		last := len(b.items) - 1
		b.items[last], b.items[b.literals] = b.items[b.literals], it
		b.literals++
	}
}

// matchesAll reports whether a pattern in normal form matches every URL: at most one slash, and a
// "$" only after a star.
func matchesAll(pattern []byte) bool {
	slashes := 0
	for i, c := range pattern {
		switch {
		case c == '/':
			slashes++
		case c == '$' && i > 0 && pattern[i-1] == '*':
		case c != '*':
			return false
		}
	}
	return slashes <= 1
}

// sortLiterals sorts by pattern, octet by octet from depth on. It takes eight octets at a time, so
// that most comparisons compare two numbers.
func (b *builder) sortLiterals(items []item, depth uint32) {
	const maxDepth = 64 // longer common prefixes are compared as they are
	if depth >= maxDepth {
		slices.SortFunc(items, func(x, y item) int { return bytes.Compare(b.pattern(x), b.pattern(y)) })
		return
	}
	for i := range items {
		items[i].key = b.keyAt(items[i], depth)
	}
	slices.SortFunc(items, func(x, y item) int { return cmp.Compare(x.key, y.key) })
	for start := 0; start < len(items); {
		end := start + 1
		for end < len(items) && items[end].key == items[start].key {
			end++
		}
		if end-start > 1 && items[start].key&0xFF != 0 {
			b.sortLiterals(items[start:end], depth+8)
		}
		start = end
	}
}

// keyAt returns eight octets of a pattern as a number, with zeros after its end. No pattern in
// normal form holds a zero.
func (b *builder) keyAt(it item, depth uint32) uint64 {
	p := b.pattern(it)
	if uint32(len(p)) >= depth+8 {
		return binary.BigEndian.Uint64(p[depth:])
	}
	var eight [8]byte
	if depth < uint32(len(p)) {
		copy(eight[:], p[depth:])
	}
	return binary.BigEndian.Uint64(eight[:])
}

// dedupe keeps one rule for each pattern: an allow rule if there is one, and the first in the file.
func (b *builder) dedupe(items []item) []item {
	kept := items[:0]
	for _, it := range items {
		if n := len(kept); n > 0 && bytes.Equal(b.pattern(kept[n-1]), b.pattern(it)) {
			if beats(it.line, kept[n-1].line) {
				kept[n-1] = it
			}
			continue
		}
		kept = append(kept, it)
	}
	return kept
}

// beats reports whether x is the rule to report, of two rules with the same pattern.
func beats(x, y lineAllow) bool {
	if x.allow() != y.allow() {
		return x.allow()
	}
	return x.line() < y.line()
}

// sortWildcards sorts by descending length of pattern, allow before disallow, then by line: the
// first that matches wins.
func (b *builder) sortWildcards(items []item) {
	for i, it := range items {
		length := math.MaxUint32 - uint64(it.end-it.start)
		items[i].key = length<<32 | uint64(it.line^allowBit)
	}
	slices.SortFunc(items, func(x, y item) int { return cmp.Compare(x.key, y.key) })
}
