package seeds

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Mode says how far from a seed the crawl goes.
type Mode uint8

// The modes of scope.mode.
const (
	ModeHost   Mode = iota // the host of the seed
	ModeDomain             // the registrable domain of the seed
	ModePrefix             // the folder of the seed
	ModeAny                // the whole web
)

// ParseMode parses a value of scope.mode. The error lists the allowed ones.
func ParseMode(s string) (Mode, error) {
	for m := ModeHost; m <= ModeAny; m++ {
		if m.String() == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("scope mode %q (allowed: host, domain, prefix, any)", s)
}

// String returns the mode as a value of scope.mode.
func (m Mode) String() string { return [...]string{"host", "domain", "prefix", "any"}[m] }

// Values of Fields.Links.
const (
	LinksAll     = "all"     // links and sitemaps
	LinksSitemap = "sitemap" // what sitemaps and feeds list, and no links of pages
	LinksNone    = "none"    // nothing: the seed alone
)

// Fields are what may be said of a seed besides its URL. The zero value of each is the setting of the crawl.
type Fields struct {
	Scope    string   `json:"scope,omitempty" enum:"host,domain,prefix,any" doc:"in place of scope.mode"`
	Include  []string `json:"include,omitempty" doc:"regular expressions, besides scope.include"`
	Exclude  []string `json:"exclude,omitempty" doc:"regular expressions, besides scope.exclude"`
	MaxDepth uint16   `json:"max_depth,omitempty" doc:"links from the seed, besides crawl.max_depth; 0: no limit"`
	MaxPages uint32   `json:"max_pages,omitempty" doc:"pages that are fetched of it; 0: no limit"`
	Hops     uint8    `json:"hops,omitempty" doc:"links that are followed out of the scope of the seed"`
	Links    string   `json:"links,omitempty" enum:"all,sitemap,none" doc:"what is followed"`
	Priority int8     `json:"priority,omitempty" doc:"of the seed itself: of the URLs of a host higher ones come first"`
	Recrawl  string   `json:"recrawl,omitempty" doc:"never, or the time between two visits, in place of recrawl.rules"`
	Tags     []string `json:"tags,omitempty" doc:"they go with each page of the seed"`
	Store    *bool    `json:"store,omitempty" doc:"false: the page of the seed is followed and not output"`
}

// Seed is a URL to start from.
type Seed struct {
	URL    weburl.URL
	Source string // where it was given, for messages: "config.yaml:12", "seeds.txt:7", "argument 2"
	// Settings says that the settings name it, so that reading them again may remove it.
	Settings bool
	// Bare says that it was given as a host without a scheme: http is tried where https cannot be reached.
	Bare bool
	// Of is the URL of the seed whose redirect led here; zero: it was given.
	Of weburl.URL
	Fields
}

// Plain returns the http form of a seed that was given as a host, on the port that it names; false: it was not.
func (s *Seed) Plain() (weburl.URL, bool) {
	if !s.Bare || s.URL.Scheme() != "https" {
		return weburl.URL{}, false
	}
	o := weburl.Origin{Scheme: "http", Host: s.URL.Host(), Port: s.URL.Port()}
	if o.Port == 443 {
		o.Port = 80
	}
	return o.URL(s.URL.RequestURI()), true
}

// ID identifies a seed: the first bytes of the SHA-256 of its URL. The zero value is none.
type ID = [5]byte

// IDOf returns the id of the seed with a URL.
func IDOf(u weburl.URL) ID {
	sum := sha256.Sum256([]byte(u.String()))
	return ID(sum[:len(ID{})])
}

// Bounds of what may be said of a seed.
const (
	maxExpressions = 100
	maxTags        = 32
	maxTag         = 64 // bytes
	maxExpression  = 1000
	maxProgram     = 15_000 // of an expression, in units of about 4 bytes
	leastPriority  = -100
	mostPriority   = 100
)

// Problem is a field of a seed with a value that it cannot have.
type Problem struct{ Field, Reason string }

// Error names the field and what it wants.
func (p *Problem) Error() string { return p.Field + ": " + p.Reason }

// Check returns a *Problem if a field has a value that it cannot have.
func (f *Fields) Check() error {
	_, err := f.compile(ModeHost)
	return err
}

// Spec is what Fields say, ready for use. It is immutable.
type Spec struct {
	Mode             Mode
	include, exclude []*regexp.Regexp
	Recrawl          time.Duration // 0: by the rules of the crawl; negative: never
	NoStore          bool
	Bare             bool
	text             string // what is said, encoded; Specs that say the same have the same
	*Fields
}

// compile checks and compiles fields. mode is that of the crawl.
func (f *Fields) compile(mode Mode) (s *Spec, err error) {
	s = &Spec{Mode: mode, Fields: f, NoStore: f.Store != nil && !*f.Store}
	if f.Scope != "" {
		if s.Mode, err = ParseMode(f.Scope); err != nil {
			return nil, &Problem{"scope", "want host, domain, prefix or any"}
		}
	}
	if s.include, err = expressions("include", f.Include); err != nil {
		return nil, err
	}
	if s.exclude, err = expressions("exclude", f.Exclude); err != nil {
		return nil, err
	}
	switch f.Links {
	case "", LinksAll, LinksSitemap, LinksNone:
	default:
		return nil, &Problem{"links", "want all, sitemap or none"}
	}
	if f.Recrawl == "never" {
		s.Recrawl = -1
	} else if f.Recrawl != "" {
		if s.Recrawl, err = time.ParseDuration(f.Recrawl); err != nil || s.Recrawl < time.Second {
			return nil, &Problem{"recrawl", "want never, or a time of 1s or more, such as 24h"}
		}
	}
	if len(f.Tags) > maxTags {
		return nil, &Problem{"tags", fmt.Sprintf("want at most %d", maxTags)}
	}
	for _, tag := range f.Tags {
		if !isTag(tag) {
			return nil, &Problem{"tags", fmt.Sprintf("%q is no tag: want 1 to %d bytes of letters, digits and marks, "+
				"without spaces and commas", tag, maxTag)}
		}
	}
	return s, nil
}

func expressions(field string, texts []string) (list []*regexp.Regexp, err error) {
	if len(texts) > maxExpressions {
		return nil, &Problem{field, fmt.Sprintf("want at most %d expressions", maxExpressions)}
	}
	for _, text := range texts {
		if text == "" || len(text) > maxExpression {
			return nil, &Problem{field, fmt.Sprintf("%.80q has %d bytes; want 1 to %d", text, len(text), maxExpression)}
		}
		e, err := regexp.Compile(text)
		if err != nil {
			return nil, &Problem{field, fmt.Sprintf("%.80q is no regular expression (RE2)", text)}
		}
		if !isSmall(text) {
			return nil, &Problem{field, fmt.Sprintf("%.80q is too large: want fewer or smaller repetitions and classes",
				text)}
		}
		list = append(list, e)
	}
	return list, nil
}

// isSmall reports whether a valid expression compiles to a small program. Repetitions and classes can make one of
// megabytes out of a short text, and its time for a URL grows with it.
func isSmall(text string) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return false
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return false
	}
	size := 0
	for i := range program.Inst {
		size += 10 + len(program.Inst[i].Rune)
	}
	return size <= maxProgram
}

func isTag(s string) bool {
	return 0 < len(s) && len(s) <= maxTag && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// set sets a field by the name and the text that a line of a list has for it.
func (f *Fields) set(name, text string) (err error) {
	number := func(most uint64) (n uint64) {
		if n, err = strconv.ParseUint(text, 10, 64); err != nil || n > most {
			err = &Problem{name, fmt.Sprintf("want a whole number from 0 to %d", most)}
		}
		return n
	}
	switch name {
	case "scope":
		f.Scope = text
	case "include":
		f.Include = append(f.Include, text)
	case "exclude":
		f.Exclude = append(f.Exclude, text)
	case "max_depth":
		f.MaxDepth = uint16(number(math.MaxUint16))
	case "max_pages":
		f.MaxPages = uint32(number(math.MaxUint32))
	case "hops":
		f.Hops = uint8(number(math.MaxUint8))
	case "links":
		f.Links = text
	case "priority":
		n, failed := strconv.ParseInt(text, 10, 8)
		if f.Priority = int8(n); failed != nil || n < leastPriority || n > mostPriority {
			err = &Problem{name, fmt.Sprintf("want a whole number from %d to %d", leastPriority, mostPriority)}
		}
	case "recrawl":
		f.Recrawl = text
	case "tags":
		f.Tags = append(f.Tags, strings.Split(text, ",")...)
	case "store":
		yes := text == "yes" || text == "true"
		if f.Store = &yes; !yes && text != "no" && text != "false" {
			err = &Problem{name, "want yes or no"}
		}
	default:
		err = &Problem{name, "is no field of a seed; want scope, include, exclude, max_depth, max_pages, hops, " +
			"links, priority, recrawl, tags or store"}
	}
	return err
}

// SetAll sets fields by texts such as "max_depth=3".
func (f *Fields) SetAll(texts []string) error {
	for _, text := range texts {
		name, value, is := strings.Cut(text, "=")
		if !is {
			return &Problem{text,
				"want FIELD=VALUE such as tags=news behind the URL, and no other white space: " +
					"in a URL it is written %20"}
		}
		if err := f.set(name, value); err != nil {
			return err
		}
	}
	return f.Check()
}

// IsZero reports whether nothing but the priority is said of a seed.
func (f *Fields) IsZero() bool {
	return f.Scope == "" && len(f.Include)+len(f.Exclude)+len(f.Tags) == 0 && f.MaxDepth == 0 && f.MaxPages == 0 &&
		f.Hops == 0 && f.Links == "" && f.Recrawl == "" && f.Store == nil
}

// stored is a seed as a database and a log have it, behind its URL.
type stored struct {
	Source   string `json:"from,omitempty"`
	Settings bool   `json:"settings,omitempty"`
	Bare     bool   `json:"bare,omitempty"`
	Of       string `json:"of,omitempty"`
	Fields
}

// Equal reports whether the same is said of two seeds, wherever they were given.
func (s *Seed) Equal(other *Seed) bool {
	x, y := *s, *other
	x.Source, y.Source, x.Settings, y.Settings = "", "", false, false
	return x.URL == y.URL && bytes.Equal(x.Encode(), y.Encode())
}

// Encode returns all of a seed but its URL.
func (s *Seed) Encode() []byte {
	b, _ := json.Marshal(&stored{s.Source, s.Settings, s.Bare, s.Of.String(), s.Fields}) // it can be encoded
	return b
}

// ErrEncoded says that a stored seed cannot be read.
var ErrEncoded = errors.New("a stored seed cannot be read")

// Decode is the inverse of Encode. No bytes are a seed without fields. The error is ErrEncoded.
func Decode(url string, b []byte) (s Seed, err error) {
	if s.URL, err = weburl.Parse(url); err != nil || s.URL.String() != url {
		return s, fmt.Errorf("%w: %q is no URL in its canonical form", ErrEncoded, url)
	}
	if len(b) == 0 {
		return s, nil
	}
	var e stored
	if err := json.Unmarshal(b, &e); err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrEncoded, url, err)
	}
	if e.Of != "" {
		if s.Of, err = weburl.Parse(e.Of); err != nil {
			return s, fmt.Errorf("%w: %s: %w", ErrEncoded, url, err)
		}
	}
	s.Source, s.Settings, s.Bare, s.Fields = e.Source, e.Settings, e.Bare, e.Fields
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrEncoded, url, err)
	}
	return s, nil
}
