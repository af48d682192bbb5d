package maze

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// written returns texts that people wrote: the sections of the documentation.
func written(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("../../../docs/*.md")
	must.True(t, err == nil && len(files) != 0, "no documentation: %v", err)
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		for section := range strings.SplitSeq(string(text), "\n## ") {
			if len(section) > 800 {
				texts = append(texts, section)
			}
		}
	}
	return texts
}

// chain writes texts as Nepenthes and iocaine do: each word is one that follows the last ones in a corpus.
type chain struct {
	order int
	words []string
	next  map[string][]int
}

func newChain(order int, corpus []string) *chain {
	c := &chain{order: order, words: strings.Fields(strings.Join(corpus, " ")), next: make(map[string][]int)}
	for i := order; i < len(c.words); i++ {
		key := strings.Join(c.words[i-order:i], " ")
		c.next[key] = append(c.next[key], i)
	}
	return c
}

func (c *chain) text(r *rand.Rand, n int) string {
	start := r.IntN(len(c.words) - c.order)
	text := append([]string{}, c.words[start:start+c.order]...)
	for range n {
		next := c.next[strings.Join(text[len(text)-c.order:], " ")]
		if next == nil {
			next = []int{r.IntN(len(c.words))}
		}
		text = append(text, c.words[next[r.IntN(len(next))]])
	}
	return strings.Join(text, " ")
}

// TestAuthor: texts of people are told from those of generators, and from pages with nothing of their own.
func TestAuthor(t *testing.T) {
	texts := written(t)
	one, two := newChain(1, texts), newChain(2, texts)
	const pages, seeds, words = stopLevels, 8, 220
	dense := func(r *rand.Rand, people bool) string {
		var b strings.Builder
		subject := r.IntN(500)
		for i := range words {
			c := rune(0x4e00 + r.IntN(40)*r.IntN(40))
			if b.WriteRune(c); people && i%5 == 0 {
				b.WriteRune(rune(0x5e00 + subject))
				b.WriteRune(rune(0x6e00 + subject))
			}
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		want  author
		least int // of 8 sets of pages
		text  func(r *rand.Rand, page int) string
	}{
		"people": {people, 8, func(r *rand.Rand, _ int) string {
			text := strings.Fields(texts[r.IntN(len(texts))])
			return strings.Join(text[:min(words, len(text))], " ")
		}},
		"people, as the tests have it": {people, 8, func(r *rand.Rand, _ int) string {
			return zoo.Prose(fmt.Sprint(r.Uint64()))
		}},
		"people, without spaces": {people, 8, func(r *rand.Rand, _ int) string { return dense(r, true) }},
		"a chain of words":       {generator, 7, func(r *rand.Rand, _ int) string { return one.text(r, words) }},
		"a chain of pairs":       {generator, 7, func(r *rand.Rand, _ int) string { return two.text(r, words) }},
		"words by chance": {generator, 8, func(r *rand.Rand, _ int) string {
			return zoo.Babble(fmt.Sprint(r.Uint64()))
		}},
		"characters by chance":       {generator, 8, func(r *rand.Rand, _ int) string { return dense(r, false) }},
		"the same text on each page": {nobody, 8, func(*rand.Rand, int) string { return texts[0] }},
		"nothing":                    {nobody, 8, func(*rand.Rand, int) string { return "" }},
		"a frame and a number": {nobody, 8, func(_ *rand.Rand, page int) string {
			return fmt.Sprint("Home Picture ", page, " Next")
		}},
	} {
		right := 0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 3))
			var p prose
			for page := range pages {
				p.add(c.text(r, page))
			}
			if by, _ := p.author(); by == c.want {
				right++
			}
		}
		assert.True(t, right >= c.least, "%s: judged so %d times of %d", name, right, seeds)
		t.Logf("%s: %d of %d", name, right, seeds)
	}
}

// TestProseBounds: a hostile text takes no more memory than any other.
func TestProseBounds(t *testing.T) {
	var p prose
	for page := range 1000 {
		var b strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&b, "%c%c%c%c ", 'a'+page%26, 'a'+page/26%26, 'a'+i%26, 'a'+i/26%26)
		}
		p.add(b.String() + strings.Repeat("\xff\xfe", 100))
	}
	assert.True(t, len(p.words) <= mostKinds && len(p.lengths) <= mostPages, "%d words of %d pages", len(p.words),
		len(p.lengths))
}

// TestEndlessSites: a site that goes on for ever loses nothing if people write its pages, or if others link to them.
func TestEndlessSites(t *testing.T) {
	endless := func(path string) (to []string) {
		r := random(path)
		for range 2 {
			to = append(to, fmt.Sprintf("/%d", r.Uint32()))
		}
		return to
	}
	const help = "/help/"
	framed := func(path string) (to []string) {
		for i := range 9 {
			to = append(to, fmt.Sprint(help, i))
		}
		if strings.HasPrefix(path, help) {
			return to
		}
		return append(to, endless(path)...)
	}
	number := regexp.MustCompile(`\d+`)
	directories := func(path string) (to []string) {
		for _, link := range framed(path) {
			if !strings.HasPrefix(link, help) {
				link += "/"
			}
			to = append(to, link)
		}
		return to
	}
	table := func(path string) string { // of values by chance
		r := random(path)
		var b strings.Builder
		for range 20 {
			fmt.Fprintf(&b, "value%c%c%c\n", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26))
		}
		return b.String()
	}
	title := func(path string) string { return "Picture " + number.FindString(path) }
	for name, c := range map[string]struct {
		text    func(string) string
		noIndex bool
		outside int // hosts that link to it
		isMaze  bool
		links   links
	}{
		"people write it":                           {zoo.Prose, false, 0, false, endless},
		"others link to it":                         {title, false, 3, false, endless},
		"nobody does":                               {title, false, 0, true, endless},
		"a generator writes it":                     {zoo.Babble, false, 3, true, endless},
		"it is kept out of indexes":                 {zoo.Prose, true, 3, true, endless},
		"one other links to it":                     {title, false, 1, true, endless},
		"a menu, and a generator writes it":         {zoo.Babble, false, 2, true, framed},
		"a menu, and others link to it":             {zoo.Babble, false, 3, false, framed},
		"a menu, and nobody writes it":              {title, false, 0, false, framed},
		"a menu, and short tables":                  {table, false, 0, false, framed},
		"a menu, and all is kept out of indexes":    {zoo.Prose, true, 0, false, framed},
		"a menu, and a part is kept out of indexes": {zoo.Prose, true, 0, true, framed},
		"a menu, and others link to the part":       {zoo.Prose, true, 3, false, framed},
		"a menu, directories, and noindex":          {zoo.Prose, true, 0, false, directories},
		"short tables":                              {table, false, 0, true, endless},
	} {
		b := New(40)
		w := web{links: c.links, text: c.text, noIndex: c.noIndex, outside: c.outside}
		if strings.HasSuffix(name, "part") || strings.Contains(name, "a part") {
			w.indexed = func(path string) bool { return strings.HasPrefix(path, help) }
		}
		requested, refused := crawl(t, b, w, 2000, "/")
		isMaze, pages := refused > 0, len(requested)
		assert.True(t, isMaze == c.isMaze && (!isMaze || pages <= 200) && (isMaze || pages >= 2000),
			"%s: %d pages, %d links refused", name, pages, refused)
	}
}
