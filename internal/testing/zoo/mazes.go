package zoo

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Maze is a generator of pages for crawlers, written from what its authors publish about it.
type Maze struct {
	Name  string
	Start string                     // where links of a site lead into it
	Links func(path string) []string // of a page, which is the same each time
	Text  func(path string) string   // of a page; it may begin with elements for its head
}

// Mazes returns mazes of four makes.
func Mazes() []Maze {
	return []Maze{
		// zadzmo.org/code/nepenthes: a tarpit below a prefix; each page has some dozens of links, all back into it,
		// whose paths are random words.
		{"Nepenthes", "/tarpit/", func(path string) (to []string) {
			r := numbersOf(path)
			for range 10 + r.IntN(30) {
				p := "/tarpit"
				for range 1 + r.IntN(4) {
					p += "/" + word(r)
				}
				to = append(to, p)
			}
			return to
		}, Babble},
		// iocaine.madhouse-project.org: garbage in place of a whole site, paragraphs by a Markov chain, and links
		// relative to the page, of one or more words, besides one to where it came from.
		{"iocaine", "/", func(path string) (to []string) {
			r := numbersOf(path)
			here := path[:strings.LastIndexByte(path, '/')+1]
			if path != "/" {
				up := strings.TrimSuffix(path, "/")
				to = append(to, up[:strings.LastIndexByte(up, '/')+1])
			}
			for range 3 + r.IntN(8) {
				p := here + word(r)
				for range r.IntN(3) {
					p += "-" + word(r)
				}
				to = append(to, p+"/")
			}
			return to
		}, Babble},
		// blog.cloudflare.com/ai-labyrinth: pages that look like those of the site and are made beforehand, each with
		// links to more of them, below a path that the network serves on every site. They have the text of a model, and
		// directives that keep them out of indexes.
		{"AI Labyrinth", "/cdn-cgi/content?id=start", func(path string) (to []string) {
			r := numbersOf(path)
			for range 4 + r.IntN(4) {
				to = append(to, fmt.Sprintf("/cdn-cgi/content?id=%s%s", word(r), word(r)))
			}
			return append(to, "/")
		}, func(path string) string { return `<meta name="robots" content="noindex">` + Prose(path) }},
		// marcusb.org/hacks/quixotic.html, the link maze: pages of scrambled text with links to random names below the
		// maze, in the frame of the site.
		{"linkmaze", "/linkmaze/", func(path string) (to []string) {
			r := numbersOf(path)
			for range 5 {
				to = append(to, fmt.Sprintf("/linkmaze/%x", r.Uint64()))
			}
			return append(to, "/", "/linkmaze/")
		}, Babble},
	}
}

// WithLinksTo returns the maze, each page of which also links to n of so many pages of its site.
func (m Maze) WithLinksTo(pages, n int) Maze {
	links := m.Links
	m.Name += " with links to its site"
	m.Links = func(path string) []string {
		to, r := links(path), numbersOf(path)
		for range n {
			to = append(to, fmt.Sprintf("/page/%d", r.IntN(pages)))
		}
		return to
	}
	return m
}

// Site returns the maze as a host of its own, with so many ordinary pages in front of it.
func (m Maze) Site(pages int) Site {
	return func(_, target string, _ time.Time) (string, bool) {
		switch {
		case target == "/robots.txt":
			return closing("200 OK", "", "text/plain", ""), false
		case pages > 0 && (target == "/" || strings.HasPrefix(target, "/page/")):
			return textPage(target, append(numberedTargets("/page/%d", pages), m.Start)...), false
		}
		text := m.Text(target)
		for _, link := range m.Links(target) {
			text += `<a href="` + link + `">x</a> `
		}
		return closing("200 OK", "", html, text), false
	}
}

// A MixedSite has a maze beside its pages.
type MixedSite struct {
	Pages  int
	IsPage func(target string) bool
	Links  func(target string) []string
}

// Beside returns a site with so many pages in a row, each with a footnote of two pages in a directory of its own, and a
// maze whose entrances are directories at the root, as those of the pages are.
func Beside(m Maze, pages int) MixedSite {
	isPage := func(target string) bool {
		return target == "/" || strings.HasPrefix(target, "/docs/") || strings.HasPrefix(target, "/note-")
	}
	return MixedSite{1 + 3*pages, isPage, func(target string) []string {
		var n int
		frame := []string{"/", "/docs/0", "/docs/1", "/docs/2", "/docs/3"}
		switch {
		case target == "/":
			for i := range 8 {
				frame = append(frame, fmt.Sprintf("/entrance-%d/", i))
			}
			return frame
		case !isPage(target):
			return m.Links(target)
		case strings.HasSuffix(target, "/more"):
			return frame
		case strings.HasPrefix(target, "/note-"):
			return append(frame, target+"more")
		}
		_, _ = fmt.Sscanf(target, "/docs/%d", &n) // the site has no other pages
		frame = append(frame, fmt.Sprintf("/note-%d/", n))
		if n+1 < pages {
			frame = append(frame, fmt.Sprintf("/docs/%d", n+1))
		}
		return frame
	}}
}

// numbersOf returns numbers that depend on a path alone.
func numbersOf(path string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path)) // it never fails
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// Prose returns a text as people write it, which depends on a path alone: the words of its subject come
// again and again.
func Prose(path string) string {
	r := numbersOf(path)
	var subject [20]string
	for i := range subject {
		subject[i] = word(r) + "ing"
	}
	return sentences(r, func() string {
		if r.IntN(3) > 0 {
			return common(r)
		}
		return subject[r.IntN(len(subject))]
	})
}

// Babble returns a text whose words are drawn by chance, the common ones more often.
func Babble(path string) string {
	r := numbersOf(path)
	return sentences(r, func() string { return common(r) })
}

// sentences returns some, of words that a function returns.
func sentences(r *rand.Rand, next func() string) string {
	var b strings.Builder
	for range 150 + r.IntN(150) {
		b.WriteString(next())
		b.WriteString([]string{" ", " ", " ", ", ", ". "}[r.IntN(5)])
	}
	return b.String()
}

// common returns a word of a language of 5,000 words, whose frequencies are those of Zipf.
func common(r *rand.Rand) string {
	n := int(math.Exp(r.Float64() * math.Log(5000)))
	return word(rand.New(rand.NewPCG(uint64(n), 2))) + "ed"
}

func word(r *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	b := make([]byte, 3+r.IntN(8))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}
