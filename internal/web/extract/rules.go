package extract

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

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

// Rule says what is taken from some pages: those of its hosts and pattern. Make it with [NewRule].
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

// RuleText is a rule as people write it.
type RuleText struct {
	// Hosts are names in canonical form; *.example.com stands for all hosts below example.com.
	// None: every host.
	Hosts   []string
	Pattern string // regular expression of path and query; empty: any
	// Links are CSS selectors. Only links that they select, or that are in a selected element,
	// count. None: all links count.
	Links, Ignore []string
	// Fields are selectors by the name of the field, with "@name" for the value of an attribute and
	// "*" at the end for a list of all matches.
	Fields map[string]string
}

// RuleError is the error of one text of a rule.
type RuleError struct {
	Key  string // pattern, links, ignore, or fields.NAME
	Text string
	Err  error
}

// Error names the key and the text.
func (e *RuleError) Error() string { return fmt.Sprintf("%s: %q: %v", e.Key, e.Text, e.Err) }

// Unwrap returns Err.
func (e *RuleError) Unwrap() error { return e.Err }

// RuleErrors are all errors of a rule.
type RuleErrors []*RuleError

// Error returns a line for each error.
func (e RuleErrors) Error() string {
	lines := make([]string, len(e))
	for i, bad := range e {
		lines[i] = bad.Error()
	}
	return strings.Join(lines, "\n")
}

func (e *RuleErrors) add(key, text string, err error) {
	*e = append(*e, &RuleError{Key: key, Text: text, Err: err})
}

// NewRule compiles a rule. Its error is of type [RuleErrors].
func NewRule(text *RuleText) (*Rule, error) {
	r, c := &Rule{hosts: text.Hosts}, &compiler{}
	var bad RuleErrors
	if text.Pattern != "" {
		var err error
		if r.pattern, err = regexp.Compile(text.Pattern); err != nil {
			bad.add("pattern", text.Pattern, err)
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
				bad.add(list.key, selector, err)
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
			bad.add("fields."+clip(name, maxFieldName), text.Fields[name], err)
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
		return !(r < 0x80 && isLetter(byte(r)) || '0' <= r && r <= '9' || r == '_' || r == '-')
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

// isFor reports whether the rule applies to a page.
func (r *Rule) isFor(u weburl.URL) bool {
	if r.pattern != nil && !r.pattern.MatchString(u.RequestURI()) {
		return false
	}
	return len(r.hosts) == 0 || slices.ContainsFunc(r.hosts, func(pattern string) bool {
		domain, below := strings.CutPrefix(pattern, "*")
		return u.Host() == pattern || below && strings.HasSuffix(u.Host(), domain)
	})
}

// ruleFor returns the first rule that applies to a page, and its number, counted from 1; nil and 0
// if there is none.
func (o *Options) ruleFor(u weburl.URL) (*Rule, int) {
	for i, r := range o.Rules {
		if r.isFor(u) {
			return r, i + 1
		}
	}
	return nil, 0
}

// ruled is the result of a rule for a document.
type ruled struct {
	rule    *Rule
	muted   map[*html.Node]bool // elements whose links do not count
	ignored map[*html.Node]bool // elements that are not read, with their content
	matches [][]*html.Node      // of each field
	room    int                 // bytes that may still be compared
	cut     bool                // a bound left out matches or values
}

// mutes reports whether the links of an element do not count.
func (d *ruled) mutes(n *html.Node) bool { return d != nil && d.muted[n] }

// ignores reports whether an element is not read.
func (d *ruled) ignores(n *html.Node) bool { return d != nil && d.ignored[n] }

func (d *ruled) isCut() bool { return d != nil && d.cut }

// apply matches the rule's selectors against a document.
func (r *Rule) apply(root *html.Node, o *Options) *ruled {
	d := &ruled{rule: r, muted: map[*html.Node]bool{}, ignored: map[*html.Node]bool{},
		matches: make([][]*html.Node, len(r.fields)), room: maxWork}
	type level struct {
		around         surroundings // of the elements of the level
		linked, hidden bool         // the level is in an element that Links select; that Ignore selects
	}
	levels := []level{{}}
	speaks := speaking{o}
	for n := root.FirstChild; n != nil; {
		if n.Type == html.ElementNode {
			at := &levels[len(levels)-1]
			matched := d.match(n, &at.around)
			d.note(n, matched)
			linked, hidden := at.linked || matched&r.links != 0, at.hidden || matched&r.ignore != 0
			if hidden && !at.hidden {
				d.ignored[n] = true
			}
			if (hidden || r.links != 0 && !linked) && speaks.Match(n) {
				d.muted[n] = true
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
func (d *ruled) match(n *html.Node, around *surroundings) partSet {
	if d.room < 0 {
		d.cut = true
		return 0
	}
	matched, work := match(d.rule.parts, n, around)
	d.room -= work
	return matched
}

// note adds an element to the fields that it matches.
func (d *ruled) note(n *html.Node, matched partSet) {
	for i := range d.rule.fields {
		f := &d.rule.fields[i]
		switch {
		case matched&f.parts == 0 || len(d.matches[i]) > 0 && !f.list:
		case len(d.matches[i]) == maxValues:
			d.cut = true
		default:
			d.matches[i] = append(d.matches[i], n)
		}
	}
}

// fields returns the values of the fields that the document has: a text or, for lists, texts.
func (d *ruled) fields() map[string]any {
	values := make(map[string]any, len(d.rule.fields))
	room, nodes := maxFieldsBytes, maxFieldNodes
	for i, f := range d.rule.fields {
		var list []string
		for _, n := range d.matches[i] {
			if value := d.value(n, f.attribute, min(room, maxValue), &nodes); value != "" {
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

// value returns the value of an attribute of an element or, if key is empty, its text: at most max
// bytes, white space collapsed.
func (d *ruled) value(n *html.Node, key string, most int, nodes *int) string {
	if key == "" {
		return d.text(n, most, nodes)
	}
	value := collapse(attribute(n.Attr, key), most+1)
	d.cut = d.cut || len(value) > most
	return clip(value, most)
}

// text returns the text in an element, without the parts that the rule ignores and without scripts
// and styles, unless the element is one of them. nodes is the number of nodes that may still be
// visited.
func (d *ruled) text(root *html.Node, most int, nodes *int) string {
	w := words{max: max(most, 1), cut: most == 0}
	for n := root; !w.cut; n = n.NextSibling {
		for n != nil {
			if *nodes--; *nodes < 0 {
				w.cut = true
				break
			}
			w.enter(n)
			if n != root && (d.ignored[n] || n.DataAtom == atom.Script || n.DataAtom == atom.Style) ||
				n.FirstChild == nil {
				break
			}
			n = n.FirstChild
		}
		for n != root && n.NextSibling == nil {
			n = n.Parent
			w.enter(n)
		}
		if n == root {
			break
		}
	}
	d.cut = d.cut || w.cut
	return string(w.b)
}

// enter writes a text, or the separation around an element.
func (w *words) enter(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		w.write(n.Data, false)
	case html.ElementNode:
		w.gap = max(w.gap, min(gapAround(n.DataAtom), wordGap))
	}
}
