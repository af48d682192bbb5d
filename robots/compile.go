package robots

import "bytes"

// Compile reads a robots.txt file for one crawler. The first of the tokens that has a group wins,
// and all groups of that name count as one. If no token has a group, the groups for "*" count (RFC
// 9309 section 2.2.1). So a crawler may pass "amble-news", "amble". Compile never fails: it skips
// what it cannot read.
func Compile(body []byte, tokens ...string) *Rules {
	text, _, _ := readable(body)
	return compile(text, tokens, nil)
}

// compile adds the sitemaps of the file to s, if that is not nil.
func compile(text []byte, tokens []string, s *sitemaps) *Rules {
	c := collector{tokens: tokens, sitemaps: s, best: noRank, group: noRank, scope: noRank}
	c.delay.none()
	c.rules = make([]rule, 0, bytes.Count(text, []byte{'\n'})+1)
	c.read(text)
	r := build(text, c.rules)
	r.pace = c.delay.pace()
	r.usage, r.license = statements(c.usage), c.license
	if len(c.ownLicense) > 0 {
		r.license = c.ownLicense
	}
	switch {
	case c.best == noRank:
		r.reason = ReasonNoGroup
	case c.best == len(tokens):
		r.group = "*"
	default:
		r.group = tokens[c.best]
	}
	return r
}

// rule is a rule of the group that applies so far, with the offsets of its pattern in the text.
type rule struct {
	start, end uint32
	line       lineAllow
}

// collector reads a file for some tokens and keeps the rules of the best of them.
type collector struct {
	tokens   []string
	rules    []rule
	delay    delays
	usage    []Usage
	sitemaps *sitemaps

	license    []string // outside of all groups
	ownLicense []string // in the group that applies so far
	isApart    bool     // what follows is in no group as far as licenses are concerned

	best   int // rank of the best name met so far
	group  int // best rank among the names of the current group
	scope  int // best rank among the names directly above an extension
	inRule bool
	inExt  bool
}

func (c *collector) read(text []byte) {
	l := newLines(text)
	c.isApart = true
	for {
		line, ok := l.next()
		if !ok {
			return
		}
		word, value, _, ok := split(line)
		if !ok {
			c.isApart = c.isApart || len(bytes.TrimSpace(line)) == 0
			continue
		}
		k, _ := keyOf(word)
		switch k {
		case keySitemap, keyHost, keyCleanParam:
			c.isApart = true
		case keyUserAgent, keyAllow, keyDisallow:
			c.isApart = false
		}
		switch k {
		case keyUserAgent:
			c.userAgent(value)
		case keyAllow, keyDisallow:
			c.inRule = true
			if c.group == c.best && c.best != noRank && len(value) > 0 {
				end := offset(text, value) + uint32(len(value))
				c.rules = append(c.rules, rule{end - uint32(len(value)), end, newLineAllow(l.number, k == keyAllow)})
			}
		case keyCrawlDelay, keyRequestRate, keyVisitTime:
			c.inExt = true
			if c.scope == c.best && c.best != noRank {
				c.delay.add(k, value, l.number)
			}
		case keyContentUsage:
			c.inRule = true
			if c.group == c.best {
				c.addUsage(ContentUsage, value, l.number)
			}
		case keyContentSignal:
			c.inExt = true
			if c.scope == c.best {
				c.addUsage(ContentSignal, value, l.number)
			}
		case keyLicense:
			c.addLicense(string(value))
		case keySitemap:
			if c.sitemaps != nil {
				_, text := sitemapField(word, value)
				c.sitemaps.add(text)
			}
		}
	}
}

// userAgent handles one more name. Only rules end the run of names that starts a group, while an
// extension belongs to the names directly above it (RFC 9309 section 2.2.4: other records must not
// end a group).
func (c *collector) userAgent(value []byte) {
	if c.inRule {
		c.inRule, c.group = false, noRank
		c.inExt = true
	}
	if c.inExt {
		c.inExt, c.scope = false, noRank
	}
	rank := rankOf(value, c.tokens)
	c.group, c.scope = min(c.group, rank), min(c.scope, rank)
	if rank < c.best {
		c.best = rank
		c.rules = c.rules[:0]
		c.delay.none()
		c.usage, c.ownLicense = nil, nil
	}
}

// addLicense keeps a license: of the group that applies so far, or of the whole file if it stands apart from groups.
// Those of a group count in place of the others (Really Simple Licensing 1.0, section 4.4).
func (c *collector) addLicense(url string) {
	if c.isApart {
		c.license = addLicense(c.license, url)
		return
	}
	c.inExt = true
	if c.scope == c.best && c.best != noRank {
		c.ownLicense = addLicense(c.ownLicense, url)
	}
}

// addUsage keeps a preference of the group that applies so far.
func (c *collector) addUsage(kind UsageKind, value []byte, line int) {
	if c.best != noRank && len(c.usage) < maxUsages && len(value) <= maxUsage {
		c.usage = append(c.usage, newUsage(kind, line, value))
	}
}

// offset returns the offset of part in text. part was sliced from text without a limit on its
// capacity.
func offset(text, part []byte) uint32 {
	return uint32(cap(text) - cap(part))
}
