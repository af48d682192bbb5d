package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// space is the ASCII whitespace of HTML.
const space = " \t\n\f\r"

const (
	maxTitleBytes     = 1024
	maxGeneratorBytes = 256
	maxLanguageBytes  = 64
	// maxRefusedFactor times MaxLinks bounds the refused references, so that a page full of them
	// costs no more than a page full of links.
	maxRefusedFactor = 4
	// referencesPerByte and referencesFloor bound the bytes of the references of a document, each
	// together with its base. A page full of "<a href=1>" whose own URL is long must not make a
	// hundred times its size of URLs.
	referencesPerByte, referencesFloor = 16, 1 << 20
)

// collector gathers links and directives from the elements of one document.
type collector struct {
	tokens []string
	o      Options

	base    weburl.URL // the base of references
	charset Charset    // of their queries

	at         map[string]int32 // canonical form -> index in p.Links
	references int              // references seen
	room       int              // remaining bytes for references and their bases
	latest     int              // index in p.Links of the link of the current element; less than 0: none
	selected   Selection        // by the rule for the page
	isMuted    bool             // the rule leaves out the links of the current element
	p          Page
}

// newCollector returns a collector for a document of size bytes.
func newCollector(base weburl.URL, tokens []string, o Options, size int) *collector {
	return &collector{
		base: base, tokens: tokens, o: o, at: make(map[string]int32), room: referencesPerByte*size + referencesFloor,
	}
}

// element takes the references of one element, and the values of its attributes.
func (c *collector) element(a atom.Atom, attrs []html.Attribute) {
	switch a {
	case atom.A:
		c.hyperlink(attrs, Anchor)
	case atom.Area:
		c.hyperlink(attrs, Area)
	case atom.Frame:
		c.refer(attribute(attrs, "src"), Frame, false)
	case atom.Iframe:
		c.refer(attribute(attrs, "src"), Iframe, false)
	case atom.Link:
		c.link(attrs)
	case atom.Meta:
		c.meta(attrs)
	case atom.Form:
		c.form(attrs)
	default:
		c.media(a, attrs)
	}
}

// attribute returns the value of the first attribute with a name.
func attribute(attrs []html.Attribute, name string) string {
	for i := range attrs {
		if attrs[i].Key == name && attrs[i].Namespace == "" {
			return attrs[i].Val
		}
	}
	return ""
}

// hyperlink takes an <a> or <area>.
func (c *collector) hyperlink(attrs []html.Attribute, kind Kind) {
	if href := attribute(attrs, "href"); href != "" {
		c.refer(href, kind, noFollow(attribute(attrs, "rel")))
	}
}

// setBase takes the first <base href>.
func (c *collector) setBase(href string) {
	if u, err := c.base.Resolve(c.charset.Reference(strings.Trim(href, space))); err == nil {
		c.base = u
	}
}

// refer resolves a reference and keeps it, unless it points into the document itself.
func (c *collector) refer(raw string, kind Kind, noFollow bool) {
	raw = strings.Trim(raw, space)
	if raw == "" || raw[0] == '#' {
		return
	}
	c.references++
	c.room -= len(raw) + len(c.base.String())
	switch {
	case c.p.Refused >= maxRefusedFactor*c.o.MaxLinks:
		c.p.Cut |= LinksBound
		return
	case c.room < 0:
		c.p.Cut |= ReferencesBound
		return
	}
	u, err := c.base.Resolve(c.charset.Reference(raw))
	if err != nil {
		c.p.Refused++
		return
	}
	if kind == Canonical && c.p.Canonical.IsZero() {
		c.p.Canonical = u
	}
	if !c.isMuted || kind == Refresh {
		c.keep(Link{URL: u, Kind: kind, NoFollow: noFollow})
	}
}

// keep adds a link to the page, once.
func (c *collector) keep(l Link) {
	if i, ok := c.at[l.URL.String()]; ok {
		c.p.Links[i].NoFollow = c.p.Links[i].NoFollow && l.NoFollow
		c.latest = int(i)
		return
	}
	if len(c.p.Links) >= c.o.MaxLinks {
		c.p.Cut |= LinksBound
		return
	}
	c.latest = len(c.p.Links)
	c.at[l.URL.String()] = int32(c.latest)
	c.p.Links = append(c.p.Links, l)
}

// noFollow reports whether a rel attribute has nofollow, ugc or sponsored.
func noFollow(rel string) bool {
	if rel == "" {
		return false
	}
	for word := range strings.FieldsSeq(rel) {
		if strings.EqualFold(word, "nofollow") || strings.EqualFold(word, "ugc") ||
			strings.EqualFold(word, "sponsored") {
			return true
		}
	}
	return false
}

// link takes a <link> whose relation names another document.
func (c *collector) link(attrs []html.Attribute) {
	href, rel := attribute(attrs, "href"), attribute(attrs, "rel")
	if href == "" || rel == "" {
		return
	}
	var related, canonical, sitemap bool
	for word := range strings.FieldsSeq(rel) {
		switch strings.ToLower(word) {
		case "next", "prev", "previous", "alternate":
			related = true
		case "canonical":
			canonical = true
		case "sitemap":
			sitemap = true
		case "license":
			if strings.EqualFold(strings.TrimSpace(attribute(attrs, "type")), "application/rsl+xml") {
				c.p.Robots.addLicense(c.charset.Reference(href))
			}
		case "stylesheet", "icon":
			return
		}
	}
	switch {
	case canonical:
		c.refer(href, Canonical, noFollow(rel))
	case sitemap:
		c.refer(href, Sitemap, noFollow(rel))
	case related:
		c.refer(href, Relation, noFollow(rel))
	}
}

// meta takes a <meta>: robots directives and refreshes.
func (c *collector) meta(attrs []html.Attribute) {
	content := attribute(attrs, "content")
	if content == "" {
		return
	}
	if name := attribute(attrs, "name"); name != "" {
		c.p.Robots.addMeta(strings.TrimSpace(name), content, c.tokens)
		if c.p.Generator == "" && strings.EqualFold(strings.TrimSpace(name), "generator") {
			c.p.Generator = collapse(content, maxGeneratorBytes)
		}
	}
	if strings.EqualFold(strings.TrimSpace(attribute(attrs, "http-equiv")), "refresh") {
		if target := refreshTarget(content); target != "" {
			c.refer(target, Refresh, false)
		}
	}
}
