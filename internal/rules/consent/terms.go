package consent

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/robots"
)

// Bounds of a document of terms.
const (
	MaxTerms      = 64 << 10 // its octets
	maxContents   = 200      // its <content>
	maxTermsDepth = 16       // its open elements
	maxUses       = 64       // the uses that a license names
)

// TermsType is the media type of a document of terms.
const TermsType = "application/rsl+xml"

const termsSpace = "https://rslstandard.org/rsl"

// Terms are the terms of a document of Really Simple Licensing 1.0, as far as they permit or prohibit a use. The zero
// value has none. It may be used concurrently.
type Terms struct {
	contents []termsContent
	size     int
}

// termsContent is what a <content> says.
type termsContent struct {
	url         string // as written
	host        string // in lower case; empty: any
	pattern     robots.Pattern
	path        string // of the pattern; empty: all that the document is about
	preferences Preferences
}

// license is a <license>, while it is read.
type license struct {
	permits, prohibits []string
	closed             bool // it lists what it permits
	conditional        bool // on a payment, a report, or who asks from where
}

// uses are the categories that terms decide, each with its own use and all that cover it, also by the words of the
// drafts before version 1.0. Refused is what refuses the category too, and permits nothing.
var uses = [...]struct {
	category         Category
	name             string
	covered, refused []string
}{
	{TrainAI, "ai-train", []string{"all", "ai-all", "ai-train", "train-ai", "train-genai"}, nil},
	{AIInput, "ai-input", []string{
		"all", "ai-all", "ai-input", "ai-use", "ai-summarize", "ai-include",
	}, []string{"ai-index"}},
	{Search, "search", []string{"all", "search"}, nil},
}

// ParseTerms reads a document of terms. What it does not know is left out, and so is what is beyond the bounds; an
// error says that it is no such document.
func ParseTerms(body []byte) (Terms, error) {
	if len(body) > MaxTerms {
		return Terms{}, fmt.Errorf("terms of %d bytes: at most %d are read", len(body), MaxTerms)
	}
	p := termsParser{decoder: xml.NewDecoder(bytes.NewReader(bytes.TrimSpace(body)))}
	if err := p.read(); err != nil {
		return Terms{}, fmt.Errorf("terms: %w", err)
	}
	return p.terms, nil
}

// termsParser reads a document of terms.
type termsParser struct {
	decoder  *xml.Decoder
	terms    Terms
	isRSL    bool     // the document has begun
	open     []string // the names of open elements of the standard; those of others are empty
	content  *termsContent
	server   bool // a license has to be fetched from a server
	licenses []license
	words    *[]string // where the text of the open element goes; nil: nowhere
}

func (p *termsParser) read() error {
	for {
		token, err := p.decoder.Token()
		if err == io.EOF && p.isRSL {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(p.open) >= maxTermsDepth {
				return fmt.Errorf("more than %d open elements", maxTermsDepth)
			}
			if err := p.start(&t); err != nil {
				return err
			}
		case xml.EndElement:
			p.end()
		case xml.CharData:
			if p.words != nil {
				p.addWords(string(t))
			}
		}
	}
}

// start takes the start of an element.
func (p *termsParser) start(t *xml.StartElement) error {
	name, parent := t.Name.Local, ""
	if t.Name.Space != termsSpace && t.Name.Space != "" && t.Name.Space != "rsl" {
		name = ""
	}
	if len(p.open) > 0 {
		parent = p.open[len(p.open)-1]
	} else if name != "rsl" {
		return fmt.Errorf("the document is a %q", t.Name.Local)
	}
	p.isRSL, p.words = true, nil
	p.open = append(p.open, name)
	switch {
	case parent == "rsl" && name == "content":
		p.content, p.licenses = newTermsContent(attributeOf(t, "url")), nil
		p.server = attributeOf(t, "server") != ""
	case parent == "content" && name == "license" && len(p.licenses) < maxContents:
		p.licenses = append(p.licenses, license{conditional: p.server})
	case parent == "license" && len(p.licenses) > 0:
		p.startTerm(t, name, &p.licenses[len(p.licenses)-1])
	}
	return nil
}

// startTerm takes the start of an element of a license.
func (p *termsParser) startTerm(t *xml.StartElement, name string, l *license) {
	kind := attributeOf(t, "type")
	switch {
	case name == "permits" && kind == "usage":
		l.closed, p.words = true, &l.permits
	case name == "prohibits" && kind == "usage":
		p.words = &l.prohibits
	case name == "permits", name == "prohibits", name == "reporting":
		l.conditional = true
	case name == "payment":
		switch kind {
		case "", "free", "attribution", "contribution":
		default:
			l.conditional = true
		}
	}
}

// addWords takes text of the open element. The words have spaces between them, and had commas in drafts.
func (p *termsParser) addWords(text string) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r <= ' ' }) {
		if len(*p.words) < maxUses {
			*p.words = append(*p.words, strings.ToLower(word))
		}
	}
}

// end takes the end of an element.
func (p *termsParser) end() {
	name := p.open[len(p.open)-1]
	p.open, p.words = p.open[:len(p.open)-1], nil
	if name != "content" || len(p.open) != 1 || p.content == nil {
		return
	}
	c := p.content
	for _, use := range uses {
		c.preferences[use.category] = preferenceOf(p.licenses, use.covered, use.refused)
	}
	if c.preferences != (Preferences{}) && len(p.terms.contents) < maxContents {
		p.terms.contents = append(p.terms.contents, *c)
		p.terms.size += 16 + 2*len(c.url)
	}
	p.content = nil
}

// preferenceOf returns what licenses say of a use: no if one prohibits it, yes if one permits it without a condition,
// and no if all that could permit it leave it out or have conditions (section 3.5).
func preferenceOf(licenses []license, covered, refused []string) Preference {
	isOf := func(list []string) func(string) bool {
		return func(word string) bool { return slices.Contains(list, word) }
	}
	said, silent := Unknown, len(licenses) == 0
	for i := range licenses {
		l := &licenses[i]
		switch {
		case slices.ContainsFunc(l.prohibits, isOf(covered)), slices.ContainsFunc(l.prohibits, isOf(refused)):
			return Disallowed
		case !l.closed && !l.conditional:
			silent = true
		case !l.conditional && slices.ContainsFunc(l.permits, isOf(covered)):
			said = Allowed
		case said == Unknown:
			said = Disallowed
		}
	}
	if said == Disallowed && silent {
		return Unknown
	}
	return said
}

func attributeOf(t *xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// newTermsContent returns what a url is about: a path as in robots.txt, with a host before it or not.
func newTermsContent(url string) *termsContent {
	url = strings.ToValidUTF8(url[:min(len(url), maxValue)], "\ufffd")
	c := &termsContent{url: url, path: url}
	if _, rest, absolute := strings.Cut(url, "://"); absolute {
		end := strings.IndexAny(rest+"/", "/?*$")
		c.host, c.path = strings.ToLower(rest[:end]), rest[end:]
		c.host, _, _ = strings.Cut(c.host, ":")
	}
	if c.path != "" && !strings.HasPrefix(c.path, "/") && !strings.HasPrefix(c.path, "*") {
		c.path = "/" + c.path
	}
	c.pattern = robots.NewPattern(c.path)
	return c
}

// Size returns about how many octets the terms take; 0: they say nothing.
func (t Terms) Size() int { return t.size }

// Encode returns a document with the terms that count: ParseTerms reads the same from it. Nothing else of the document
// is in it.
func (t Terms) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<rsl xmlns=%q>", termsSpace)
	for _, c := range t.contents {
		b.WriteString(`<content url="`)
		_ = xml.EscapeText(&b, []byte(c.url)) // into memory
		// The license without a list keeps what the other one leaves out from being refused.
		fmt.Fprintf(&b, `"><license><prohibits type="usage">%s</prohibits></license>`, c.words(Disallowed))
		if permits := c.words(Allowed); permits != "" {
			fmt.Fprintf(&b, `<license><permits type="usage">%s</permits></license>`, permits)
		}
		b.WriteString("</content>")
	}
	b.WriteString("</rsl>")
	return b.Bytes()
}

// words returns the uses that a preference is about.
func (c *termsContent) words(p Preference) string {
	var words []string
	for _, use := range uses {
		if c.preferences[use.category] == p {
			words = append(words, use.name)
		}
	}
	return strings.Join(words, " ")
}

// Statement returns what the terms say of the page of a host with a request URI: of each use the narrowest of the
// contents that cover the page and name it, the strictest of several (section 3.1.1). source is what names the
// document, and name how it is called.
func (t Terms) Statement(source Source, name, host, requestURI string) (s Statement, ok bool) {
	var narrowest [categories]int
	s = Statement{Source: source, Terms: true}
	for i := range t.contents {
		c := &t.contents[i]
		if c.host != "" && c.host != host || c.path != "" && !c.pattern.Match(requestURI) {
			continue
		}
		for category, p := range c.preferences {
			switch n := len(c.path) + 1; {
			case p == Unknown || n < narrowest[category]:
			case n > narrowest[category]:
				narrowest[category], s.Preferences[category] = n, p
			default:
				s.Preferences[category] = max(s.Preferences[category], p)
			}
		}
	}
	var parts []string
	said := termsContent{preferences: s.Preferences}
	for _, of := range []struct {
		verb string
		p    Preference
	}{{"permits ", Allowed}, {"prohibits ", Disallowed}} {
		if words := said.words(of.p); words != "" {
			parts = append(parts, of.verb+words)
		}
	}
	s.Text = name + " " + strings.Join(parts, ", ")
	return s, len(parts) > 0
}
