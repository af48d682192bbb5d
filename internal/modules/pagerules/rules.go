//go:build !core

package pagerules

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

const (
	// maxFields bounds the fields of a rule, maxFieldName the length of a name in bytes.
	maxFields, maxFieldName = 32, 64
	// maxValues bounds the values of a list, maxValue the length of a value in bytes.
	maxValues, maxValue = 100, 8 << 10
	// maxFieldsBytes bounds the bytes of all values of a page.
	maxFieldsBytes = 64 << 10
	// maxFieldNodes bounds the nodes that are visited for the texts of fields.
	maxFieldNodes = 2_000_000
)

// Rule says what is taken from some pages: those of its hosts and pattern. Make it with [New].
type Rule struct {
	hosts   []string
	pattern *regexp.Regexp

	parts         []compound
	links, ignore partSet // links: 0: links count everywhere
	fields        []field
}

// field is a value that is taken from a page.
type field struct {
	name      string
	parts     partSet
	attribute string // whose value is taken; empty: the text is taken
	list      bool   // all matches are taken, not the first alone
}

// New compiles a rule. Its error is of type [extract.RuleErrors].
func New(text *extract.RuleText) (*Rule, error) {
	r, c := &Rule{hosts: text.Hosts}, &compiler{}
	var bad extract.RuleErrors
	if text.Pattern != "" {
		var err error
		if r.pattern, err = regexp.Compile(text.Pattern); err != nil {
			bad.Add("pattern", text.Pattern, err)
		}
	}
	for _, list := range []struct {
		key       string
		selectors []string
		parts     *partSet
	}{{"links", text.Links, &r.links}, {"ignore", text.Ignore, &r.ignore}} {
		for _, selector := range list.selectors {
			last, err := c.compile(selector)
			if err != nil {
				bad.Add(list.key, selector, err)
			}
			*list.parts |= last
		}
	}
	for _, name := range slices.Sorted(maps.Keys(text.Fields)) {
		f, err := c.field(name, text.Fields[name])
		if err == nil && len(r.fields) == maxFields {
			err = fmt.Errorf("there are more than %d fields", maxFields)
		}
		if err != nil {
			bad.Add("fields."+strings.ToValidUTF8(name[:min(len(name), maxFieldName)], ""), text.Fields[name], err)
		}
		r.fields = append(r.fields, f)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	r.parts = c.parts
	return r, nil
}

// field reads a selector of a field, such as "meta[name=author]@content" or "a[rel=tag]*".
func (c *compiler) field(name, text string) (f field, err error) {
	f.name = name
	if name == "" || len(name) > maxFieldName || strings.ContainsFunc(name, func(r rune) bool {
		return !(isLetter(r) || '0' <= r && r <= '9' || r == '_' || r == '-')
	}) {
		return f, fmt.Errorf("want a name of letters, digits, _ and -, at most %d", maxFieldName)
	}
	text = strings.TrimSpace(text)
	if before, all := strings.CutSuffix(text, "*"); all && before != "" &&
		strings.IndexByte(space+combinators+",", before[len(before)-1]) < 0 {
		f.list, text = true, before
	}
	if at := strings.LastIndexByte(text, '@'); at > strings.LastIndexAny(text, `]"')`) {
		f.attribute, text = strings.ToLower(text[at+1:]), text[:at]
		if f.attribute == "" || strings.ContainsAny(f.attribute, space+combinators+"[](){}.#*,@") {
			return f, errors.New("want the name of an attribute behind @")
		}
	}
	f.parts, err = c.compile(text)
	return f, err
}

// IsFor reports whether the rule applies to a page.
func (r *Rule) IsFor(u weburl.URL) bool {
	if r.pattern != nil && !r.pattern.MatchString(u.RequestURI()) {
		return false
	}
	return len(r.hosts) == 0 || slices.ContainsFunc(r.hosts, func(pattern string) bool {
		domain, below := strings.CutPrefix(pattern, "*")
		return u.Host() == pattern || below && strings.HasSuffix(u.Host(), domain)
	})
}

// selection gathers what a rule selects of a document.
type selection struct {
	extract.Selection
	rule    *Rule
	matches [][]*html.Node // of each field
	room    int            // bytes that may still be compared
}

// Apply matches the rule's selectors against a document.
func (r *Rule) Apply(root *html.Node, speaks func(*html.Node) bool) extract.Selection {
	d := r.walk(root, speaks)
	d.Fields = d.fields()
	return d.Selection
}

// walk matches the elements below root, in document order.
func (r *Rule) walk(root *html.Node, speaks func(*html.Node) bool) *selection {
	d := &selection{rule: r, matches: make([][]*html.Node, len(r.fields)), room: maxWork}
	d.Muted, d.Ignored = make(map[*html.Node]bool), make(map[*html.Node]bool)
	type level struct {
		around         surroundings // of the elements of the level
		linked, hidden bool         // the level is in an element that Links select; that Ignore selects
	}
	levels := []level{{}}
	for n := root.FirstChild; n != nil; {
		if n.Type == html.ElementNode {
			at := &levels[len(levels)-1]
			matched := d.match(n, &at.around)
			d.note(n, matched)
			linked, hidden := at.linked || matched&r.links != 0, at.hidden || matched&r.ignore != 0
			if hidden && !at.hidden {
				d.Ignored[n] = true
			}
			if (hidden || r.links != 0 && !linked) && speaks(n) {
				d.Muted[n] = true
			}
			at.around.last = matched
			at.around.earlier |= matched
			if n.FirstChild != nil {
				inside := surroundings{parent: matched, above: at.around.above | matched}
				levels = append(levels, level{inside, linked, hidden})
				n = n.FirstChild
				continue
			}
		}
		for n != nil && n.NextSibling == nil {
			n, levels = n.Parent, levels[:len(levels)-1]
			if len(levels) == 0 {
				return d
			}
		}
		n = n.NextSibling
	}
	return d
}

// match returns the parts that an element matches; none beyond the bound.
func (d *selection) match(n *html.Node, around *surroundings) partSet {
	if d.room < 0 {
		d.Cut = true
		return 0
	}
	matched, work := match(d.rule.parts, n, around)
	d.room -= work
	return matched
}

// note adds an element to the fields that it matches.
func (d *selection) note(n *html.Node, matched partSet) {
	for i := range d.rule.fields {
		f := &d.rule.fields[i]
		switch {
		case matched&f.parts == 0 || len(d.matches[i]) > 0 && !f.list:
		case len(d.matches[i]) == maxValues:
			d.Cut = true
		default:
			d.matches[i] = append(d.matches[i], n)
		}
	}
}

// fields returns the values of the fields that the document has: a text or, for lists, texts.
func (d *selection) fields() map[string]any {
	values := make(map[string]any, len(d.rule.fields))
	room, nodes := maxFieldsBytes, maxFieldNodes
	for i, f := range d.rule.fields {
		var list []string
		for _, n := range d.matches[i] {
			value, cut := extract.Value(n, f.attribute, d.Ignored, min(room, maxValue), &nodes)
			d.Cut = d.Cut || cut
			if value != "" {
				room -= len(value)
				list = append(list, value)
			}
		}
		switch {
		case len(list) == 0:
		case f.list:
			values[f.name] = list
		default:
			values[f.name] = list[0]
		}
	}
	return values
}
