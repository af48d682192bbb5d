package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/amble-crawler/amble/internal/weburl"
)

const (
	maxTitleBytes    = 1024
	maxLanguageBytes = 64
	// maxRefused bounds the references that are tried in vain, so that a page of
	// nothing else costs no more than one of links.
	maxRefusedFactor = 4
)

// reference is a link before it is resolved.
type reference struct {
	raw      string
	kind     Kind
	noFollow bool
}

// collector gathers what the elements of one document say.
type collector struct {
	base   weburl.URL
	tokens []string
	o      Options

	references []reference
	baseRef    string // of the first <base href>
	hasBase    bool
	title      string
	hasTitle   bool
	language   string
	directives directives
	truncated  bool
}

// element takes what one element of the HTML namespace says; a title's text is
// not among its attributes and comes through setTitle.
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
	case atom.Base:
		if href := attribute(attrs, "href"); href != "" && !c.hasBase {
			c.baseRef, c.hasBase = href, true
		}
	case atom.Html:
		if lang := strings.TrimSpace(attribute(attrs, "lang")); c.language == "" && len(lang) <= maxLanguageBytes {
			c.language = lang
		}
	}
}

// wanted reports whether element does anything with a.
func wanted(a atom.Atom) bool {
	switch a {
	case atom.A, atom.Area, atom.Frame, atom.Iframe, atom.Link, atom.Meta, atom.Base, atom.Html:
		return true
	}
	return false
}

// attribute returns the value of the first attribute of that name.
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

// refer notes a reference, unless it is one into the document itself.
func (c *collector) refer(raw string, kind Kind, noFollow bool) {
	raw = strings.Trim(raw, " \t\n\f\r")
	if raw != "" && raw[0] != '#' {
		c.references = append(c.references, reference{raw, kind, noFollow})
	}
}

// noFollow reports whether a rel attribute asks not to follow.
func noFollow(rel string) bool {
	if rel == "" {
		return false
	}
	for word := range strings.FieldsSeq(rel) {
		if strings.EqualFold(word, "nofollow") || strings.EqualFold(word, "ugc") || strings.EqualFold(word, "sponsored") {
			return true
		}
	}
	return false
}

// link takes a <link>: the relations that name another document.
func (c *collector) link(attrs []html.Attribute) {
	href, rel := attribute(attrs, "href"), attribute(attrs, "rel")
	if href == "" || rel == "" {
		return
	}
	var related, canonical bool
	for word := range strings.FieldsSeq(rel) {
		switch strings.ToLower(word) {
		case "next", "prev", "previous", "alternate":
			related = true
		case "canonical":
			canonical = true
		case "stylesheet", "icon":
			return
		}
	}
	switch {
	case canonical:
		c.refer(href, Canonical, noFollow(rel))
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
		c.directives.addMeta(strings.TrimSpace(name), content, c.tokens)
	}
	if strings.EqualFold(strings.TrimSpace(attribute(attrs, "http-equiv")), "refresh") {
		if target := refreshTarget(content); target != "" {
			c.refer(target, Refresh, false)
		}
	}
}

// setTitle takes the text of a <title>.
func (c *collector) setTitle(text string) {
	if c.hasTitle {
		return
	}
	c.hasTitle = true
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.Len()+len(word) > maxTitleBytes {
			b.WriteString(strings.ToValidUTF8(word[:maxTitleBytes-b.Len()], ""))
			break
		}
		b.WriteString(word)
	}
	c.title = strings.TrimSpace(b.String())
}

// page resolves the references and returns what was gathered.
func (c *collector) page() Page {
	p := Page{
		Title: c.title, Language: c.language,
		NoIndex: c.directives.noIndex, NoFollow: c.directives.noFollow,
		Truncated: c.truncated,
	}
	base := c.base
	if c.hasBase {
		if u, err := c.base.Resolve(c.baseRef); err == nil {
			base = u
		}
	}
	at := make(map[weburl.URL]int, min(len(c.references), c.o.MaxLinks))
	for _, ref := range c.references {
		u, err := base.Resolve(ref.raw)
		if err != nil {
			if p.Refused++; p.Refused >= maxRefusedFactor*c.o.MaxLinks {
				p.Truncated = true
				break
			}
			continue
		}
		if ref.kind == Canonical && p.Canonical.IsZero() {
			p.Canonical = u
		}
		if i, ok := at[u]; ok {
			p.Links[i].NoFollow = p.Links[i].NoFollow && ref.noFollow
			continue
		}
		if len(p.Links) == c.o.MaxLinks {
			p.Truncated = true
			break
		}
		at[u] = len(p.Links)
		p.Links = append(p.Links, Link{URL: u, Kind: ref.kind, NoFollow: ref.noFollow})
	}
	return p
}
