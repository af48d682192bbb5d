package expensive

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed endpoints.txt
var endpoints string

// Products is a set of products, by their numbers in the list.
type Products uint32

// AnyProduct has all products: a form counts wherever its link is.
const AnyProduct Products = 1<<32 - 1

// List finds expensive endpoints. It is immutable; any goroutine may use it.
type List struct {
	products []string      // by number
	marks    []productMark // of pages
	segments index         // by the segment of the path that each needs
	names    index         // by the name of the parameter that each needs
}

// index finds the lines that need a segment of a path, or the name of a parameter.
type index struct {
	lines map[string][]*Line
	marks string // one of these ends a key that is the start of others
	// By the first byte of a key: a bit for each tail, as tailOf returns it, and one for each byte in the middle.
	whole, middles [256]uint64
	starts         [256]uint64 // by the first byte of a key that is the start of others: a bit for each second byte
}

// add puts a line under a key, which all the line's texts start with if it ends in a mark.
func (x *index) add(key string, n *Line) {
	x.lines[key] = append(x.lines[key], n)
	x.whole[key[0]] |= 1 << tailOf(key)
	x.middles[key[0]] |= 1 << (key[len(key)/2] % 64)
	if n := len(key); n > 1 && strings.IndexByte(x.marks, key[n-1]) >= 0 {
		x.starts[key[0]] |= 1 << (key[1] % 64)
	}
}

// tailOf returns what tells most texts with the same first byte apart: 6 bits of the length and the last byte.
func tailOf(text string) int { return (5*len(text) + int(text[len(text)-1])) % 64 }

// mayHave reports whether there may be lines for a text: as a whole, or by its start.
func (x *index) mayHave(text string) bool {
	if text == "" {
		return false
	}
	whole := x.whole[text[0]] >> tailOf(text) & (x.middles[text[0]] >> (text[len(text)/2] % 64))
	return (whole|x.starts[text[0]]>>(text[min(1, len(text)-1)]%64))&1 != 0
}

// Line is a line of the list: a form of URLs.
type Line struct {
	Number         int // of the line, from 1
	Product, Class string
	OnPage         bool // it needs a page of the product
	Source, Date   string
	product        Products
	path           []string // segments in a row
	prefix         bool     // the last of path is a prefix
	depth          int
	queries        []parameter
	commit         bool
	endings        []string
}

// String names the line: "line 34: GitLab, blame".
func (l *Line) String() string { return fmt.Sprintf("line %d: %s, %s", l.Number, l.Product, l.Class) }

// parameter is a parameter that a form needs.
type parameter struct {
	name   string
	prefix bool // name is the start of one
	not    bool // it has none of the values
	values []string
}

// productMark is a mark of a product on its pages.
type productMark struct {
	product   Products
	generator string // the start of it, in lower case
	cookie    string // the start of the name
}

// NewList returns the list of endpoints.txt.
func NewList() *List {
	l, err := parse(endpoints)
	if err != nil {
		panic("expensive: endpoints.txt: " + err.Error()) // the tests read it
	}
	return l
}

func parse(text string) (*List, error) {
	l := &List{
		segments: index{lines: make(map[string][]*Line), marks: ":~"},
		names:    index{lines: make(map[string][]*Line), marks: "_.-"},
	}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := l.add(i+1, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return l, nil
}

func (l *List) add(number int, line string) error {
	columns := strings.Split(line, " | ")
	if len(columns) != 6 {
		return fmt.Errorf("%d columns instead of 6", len(columns))
	}
	if _, err := time.Parse(time.DateOnly, columns[5]); err != nil {
		return err
	}
	n := &Line{
		Number: number, Product: columns[0], Class: columns[1], OnPage: columns[2] == "page",
		Source: columns[4], Date: columns[5], product: l.product(columns[0]),
	}
	switch {
	case n.Product == "" || n.Source == "":
		return fmt.Errorf("product %q, source %q", n.Product, n.Source)
	case n.Class == "mark":
		return l.addMark(n.product, columns[3])
	case columns[2] != "page" && columns[2] != "url":
		return fmt.Errorf("needs %q, want page or url", columns[2])
	}
	for word := range strings.FieldsSeq(columns[3]) {
		if err := n.need(word); err != nil {
			return err
		}
	}
	return l.index(n)
}

// product returns the set of one product, which it adds if it is new.
func (l *List) product(name string) Products {
	i := slices.Index(l.products, name)
	if i < 0 {
		i = len(l.products)
		l.products = append(l.products, name)
	}
	return 1 << i
}

func (l *List) addMark(product Products, condition string) error {
	what, text, _ := strings.Cut(condition, "=")
	switch {
	case text != "" && what == "generator":
		l.marks = append(l.marks, productMark{product: product, generator: strings.ToLower(text)})
	case text != "" && what == "cookie":
		l.marks = append(l.marks, productMark{product: product, cookie: text})
	default:
		return fmt.Errorf("mark %q, want generator= or cookie=", condition)
	}
	return nil
}

// need adds a word of the condition.
func (n *Line) need(word string) (err error) {
	what, value, _ := strings.Cut(word, "=")
	switch what {
	case "hash":
		n.commit = true
	case "end":
		n.endings = strings.Split(value, ",")
	case "depth":
		n.depth, err = strconv.Atoi(value)
	case "path":
		value, n.prefix = strings.CutSuffix(value, "...")
		n.path = strings.Split(value, "/")
	case "query":
		name, values, some := strings.Cut(value, ":")
		p := parameter{}
		p.name, p.prefix = strings.CutSuffix(name, "*")
		if some {
			values, p.not = strings.CutPrefix(values, "!")
			p.values = strings.Split(values, ",")
		}
		n.queries = append(n.queries, p)
	default:
		err = fmt.Errorf("condition %q", word)
	}
	return err
}

// index puts a line under a segment or a parameter that it needs.
func (l *List) index(n *Line) error {
	if len(n.path) > 0 {
		key := n.path[len(n.path)-1]
		if n.prefix {
			key = start(key, l.segments.marks)
		}
		if n.prefix && len(n.path) > 1 {
			key = n.path[len(n.path)-2]
		}
		if key == "" {
			return fmt.Errorf("path %q has no key", n.path)
		}
		l.segments.add(key, n)
		return nil
	}
	if len(n.queries) == 0 {
		return fmt.Errorf("neither path= nor query=")
	}
	p := n.queries[len(n.queries)-1]
	key := p.name
	if p.prefix {
		key = start(key, l.names.marks)
	}
	if key == "" {
		return fmt.Errorf("parameter %q has no key", p.name)
	}
	l.names.add(key, n)
	return nil
}

// start returns a text up to its first mark, and with it; empty if it has none.
func start(text, marks string) string { return text[:strings.IndexAny(text, marks)+1] }
