//go:build !core

package robots

import (
	"bytes"
	"strings"
)

// File is everything that a robots.txt says, with line numbers, including what Compile leaves out. It is for people
// and tools; a crawler uses Rules. Line numbers count from 1. A File does not change after Parse.
type File struct {
	Groups  []Group
	Records []Field // of the whole file (Sitemap, Host, Clean-param, License) or without a meaning here, in file order

	Warnings []Warning // at most maxWarnings
	Omitted  int       // number of warnings beyond maxWarnings

	Lines int  // that were read
	Cut   bool // the file is longer than what is read of it

	text []byte
}

// Group is a run of user-agent lines and the rules that follow (RFC 9309 section 2.2.1).
type Group struct {
	Agents     []Agent
	Rules      []Rule
	Extensions []Extension
}

// Agent is a user-agent line.
type Agent struct {
	Line  int
	Name  string // the product token, "*" for everybody, or "" for nobody
	Value string // as it is written
}

// Rule is an allow or disallow line. An empty pattern has no effect.
type Rule struct {
	Line    int
	Allow   bool
	Pattern string // as it is written
}

// String returns the rule as a line of a file, such as "Disallow: /a".
func (r Rule) String() string {
	if r.Allow {
		return "Allow: " + r.Pattern
	}
	return "Disallow: " + r.Pattern
}

// Extension is another record of a group. It belongs to the user-agent lines directly above it,
// which may be fewer than those of the group: a delay between two names belongs to the first, while
// the rules below belong to both. Content-Usage is a rule in this respect: it belongs to all names of
// its group, and the next name starts another group (draft-ietf-aipref-attach, section 3).
type Extension struct {
	Field
	Agents []Agent
	key    key
}

// Field is a record that is neither a user-agent line nor a rule.
type Field struct {
	Line  int
	Key   string // as it is written
	Value string
}

// Parse reads a whole robots.txt file. It never fails: the warnings list what it cannot read. The
// File keeps body, which must not change any more.
func Parse(body []byte) *File {
	text, enc, cut := readable(body)
	p := parser{file: &File{text: text, Cut: cut}}
	p.encoding(enc)
	l := newLines(text)
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		p.line, p.file.Lines = l.number, l.number
		p.read(line)
	}
	p.finish()
	return p.file
}

// Rules compiles the file for one crawler; see Compile.
func (f *File) Rules(tokens ...string) *Rules { return compile(f.text, tokens, nil) }

// Text returns the line with the given number as in the file, without white space at its ends, or "".
func (f *File) Text(line int) string { return lineText(f.text, line) }

// parser builds a File line by line.
type parser struct {
	file  *File
	line  int
	scope int  // index of the first of the names directly above, in the last group
	rule  bool // the last group has rules, or lines that tried to be: the next name starts another group
	ext   bool // the names directly above have an extension: the next name starts another scope
}

func (p *parser) group() *Group {
	if len(p.file.Groups) == 0 {
		return nil
	}
	return &p.file.Groups[len(p.file.Groups)-1]
}

func (p *parser) read(line []byte) {
	p.octets(line)
	word, value, colon, ok := split(line)
	if !ok {
		if content := beforeComment(line); len(content) > 0 {
			p.warn(WarnIgnored, "no record: neither a key with a colon nor two words: %s", quote(content))
		}
		return
	}
	k, proper := keyOf(word)
	if k != keyUnknown && (!proper || !colon) {
		p.misspelled(word, k, colon)
	}
	switch {
	case k == keyUserAgent:
		p.agent(value)
	case k == keyAllow || k == keyDisallow:
		p.addRule(k == keyAllow, value)
	case k.scoped():
		p.extension(k, word, value)
	default:
		p.record(k, word, value)
	}
}

func beforeComment(line []byte) []byte {
	line, _, _ = bytes.Cut(line, []byte{'#'})
	return trim(line)
}

func (p *parser) agent(value []byte) {
	if g := p.group(); g == nil || p.rule {
		p.withoutRules(g)
		p.file.Groups = append(p.file.Groups, Group{})
		p.rule, p.ext, p.scope = false, false, 0
	}
	g := p.group()
	if p.ext {
		p.ext, p.scope = false, len(g.Agents)
	}
	name := string(tokenIn(value))
	if isGlobal(value) {
		name = "*"
	}
	g.Agents = append(g.Agents, Agent{Line: p.line, Name: name, Value: string(value)})
	p.checkAgent(value, name)
}

func (p *parser) addRule(allow bool, value []byte) {
	g := p.group()
	if g == nil {
		p.warn(WarnOutside, "rule before the first user-agent line: it applies to no crawler")
		return
	}
	p.rule, p.ext = true, true
	g.Rules = append(g.Rules, Rule{Line: p.line, Allow: allow, Pattern: string(value)})
	if len(value) > 0 && value[0] != '/' && value[0] != '*' {
		p.warn(WarnPattern, "pattern starts with neither / nor *: it matches no URL: %s", quote(value))
	}
}

func (p *parser) extension(k key, word, value []byte) {
	g := p.group()
	if g == nil {
		p.warn(WarnOutside, "%s before the first user-agent line: it applies to no crawler", k)
		return
	}
	p.ext = true
	first := p.scope
	if k == keyContentUsage { // a rule: it is for all names of the group, and ends their run
		p.rule, first = true, 0
	}
	scope := g.Agents[first:len(g.Agents):len(g.Agents)]
	g.Extensions = append(g.Extensions, Extension{Field{p.line, string(word), string(value)}, scope, k})
	p.checkExtension(k, value)
}

func (p *parser) record(k key, word, value []byte) {
	field := Field{p.line, string(word), string(value)}
	if k == keySitemap {
		field.Key, field.Value = sitemapField(word, value)
	}
	p.file.Records = append(p.file.Records, field)
	switch k {
	case keySitemap:
		p.checkSitemap(field.Value)
	case keyUnknown:
		p.warn(WarnUnknown, "unknown key %s: it has no meaning here", quote(word))
	}
}

func (p *parser) finish() {
	p.withoutRules(p.group())
	if p.file.Cut {
		p.line++
		p.warn(WarnCut, "the file is longer than %d octets: this line and all lines after it were not read", leastRead)
	}
}

// Sitemaps returns the sitemaps that the file names, resolved against base, the URL of the file. Each occurs once, in
// file order, and only if it is an http or https URL. Sitemaps belong to no group.
func (f *File) Sitemaps(base string) []string {
	s := sitemaps{base: base}
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k == keySitemap {
			s.add(r.Value)
		}
	}
	return s.urls
}

// Hosts returns the values of the Host records: the names that the site prefers. They are information only.
func (f *File) Hosts() []string {
	var all []string
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k == keyHost && r.Value != "" {
			all = append(all, r.Value)
		}
	}
	return all
}

// CleanParam is a Clean-param record: query parameters that do not change the page, below a path.
// It never changes the identity of a URL.
type CleanParam struct {
	Line   int
	Params []string
	Path   string // "" means everywhere
}

// CleanParams returns the Clean-param records. They are information only.
func (f *File) CleanParams() []CleanParam {
	var all []CleanParam
	for _, r := range f.Records {
		if k, _ := keyOf([]byte(r.Key)); k != keyCleanParam {
			continue
		}
		params, path, _ := strings.Cut(r.Value, " ")
		if params != "" {
			all = append(all, CleanParam{r.Line, strings.Split(params, "&"), strings.TrimSpace(path)})
		}
	}
	return all
}
