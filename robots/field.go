package robots

import "bytes"

// key is the meaning of a line.
type key uint8

const (
	keyUnknown key = iota
	keyUserAgent
	keyAllow
	keyDisallow
	keySitemap
	keyCrawlDelay
	keyRequestRate
	keyVisitTime
	keyContentSignal
	keyContentUsage
	keyHost
	keyCleanParam
	keyLicense
)

// scoped reports whether a record of this kind belongs to the user-agent lines directly above it.
func (k key) scoped() bool {
	return k >= keyCrawlDelay && k <= keyContentUsage
}

// spelling is one accepted way to write a key.
type spelling struct {
	text   string
	key    key
	prefix bool // a longer word that begins with text counts too
	proper bool // not a misspelling
}

// spellings lists the accepted keys by first letter, so that each line is compared with few of
// them. The five keys that decide something are found by prefix, and in the misspellings that
// Google's parser accepts.
func spellings(first byte) []spelling {
	switch first | 0x20 {
	case 'u':
		return spellingsU[:]
	case 'd':
		return spellingsD[:]
	case 'a':
		return spellingsA[:]
	case 's':
		return spellingsS[:]
	case 'c':
		return spellingsC[:]
	case 'r':
		return spellingsR[:]
	case 'v':
		return spellingsV[:]
	case 'h':
		return spellingsH[:]
	case 'l':
		return spellingsL[:]
	}
	return nil
}

var (
	spellingsU = [...]spelling{
		{"user-agent", keyUserAgent, true, true},
		{"useragent", keyUserAgent, true, false},
		{"user agent", keyUserAgent, true, false},
	}
	spellingsD = [...]spelling{
		{"disallow", keyDisallow, true, true},
		{"dissallow", keyDisallow, true, false},
		{"dissalow", keyDisallow, true, false},
		{"disalow", keyDisallow, true, false},
		{"diasllow", keyDisallow, true, false},
		{"disallaw", keyDisallow, true, false},
	}
	spellingsA = [...]spelling{{"allow", keyAllow, true, true}}
	spellingsS = [...]spelling{
		{"sitemap", keySitemap, true, true},
		{"site-map", keySitemap, true, false},
		{"site map", keySitemap, true, false},
	}
	spellingsC = [...]spelling{
		{"crawl-delay", keyCrawlDelay, true, true},
		{"crawldelay", keyCrawlDelay, true, false},
		{"crawl delay", keyCrawlDelay, true, false},
		{"crawl_delay", keyCrawlDelay, true, false},
		{"content-signal", keyContentSignal, true, true},
		{"content-usage", keyContentUsage, true, true},
		{"clean-param", keyCleanParam, true, true},
	}
	spellingsR = [...]spelling{{"request-rate", keyRequestRate, true, true}}
	spellingsV = [...]spelling{{"visit-time", keyVisitTime, true, true}}
	spellingsH = [...]spelling{{"host", keyHost, false, true}}
	spellingsL = [...]spelling{{"license", keyLicense, false, true}}
)

// keyOf finds the key that word spells, in any case. proper is false for an accepted misspelling
// and for a word that is longer than its key.
func keyOf(word []byte) (k key, proper bool) {
	if len(word) == 0 {
		return keyUnknown, false
	}
	for _, s := range spellings(word[0]) {
		if len(word) >= len(s.text) && equalFold(word[:len(s.text)], s.text) {
			if len(word) == len(s.text) || s.prefix {
				return s.key, s.proper && len(word) == len(s.text)
			}
		}
	}
	return keyUnknown, false
}

// split divides a line into the word before the colon and the value after it, both trimmed. Without
// a colon, blanks divide it if that leaves exactly two words. found is false if the line is no
// record.
func split(line []byte) (word, value []byte, colon, found bool) {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	line = trim(line)
	if len(line) == 0 {
		return nil, nil, false, false
	}
	i := bytes.IndexByte(line, ':')
	colon = i >= 0
	if !colon {
		i = indexBlank(line)
		if i < 0 || indexBlank(trim(line[i:])) >= 0 {
			return nil, nil, false, false
		}
	}
	word = trim(line[:i])
	return word, trim(line[i+1:]), colon, len(word) > 0
}

func indexBlank(b []byte) int {
	for i, c := range b {
		if c == ' ' || c == '\t' {
			return i
		}
	}
	return -1
}

func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

// trim removes ASCII white space at both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// equalFold compares octets, ignoring the case of ASCII letters.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range b {
		if lower(b[i]) != lower(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}
