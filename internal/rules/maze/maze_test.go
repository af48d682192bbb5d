package maze

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/zoo"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// links returns the links of a page; nil: it has none, or is no HTML.
type links func(path string) []string

// web is what a host has.
type web struct {
	links   links
	text    func(path string) string // nil: none
	noIndex bool
	indexed func(path string) bool // pages without noindex all the same; nil: none
	outside int                    // hosts that link to two of its pages once some were requested
}

func urlOf(t *testing.T, path string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse("http://site.test" + path))(t)
}

// crawl crawls a site as the frontier does: by priority, then in the order of discovery. It ends after most
// requests, and returns what was requested, and what was refused.
func crawl(t *testing.T, b *Branches, of web, most int, seeds ...string) (requested map[string]int, refused int) {
	t.Helper()
	type entry struct {
		path, via string
		depth     uint16
	}
	queues := map[int8][]entry{}
	known := make(map[string]bool)
	add := func(path, via string, depth uint16, priority int8) {
		if !known[path] {
			known[path] = true
			queues[priority] = append(queues[priority], entry{path, via, depth})
		}
	}
	for _, s := range seeds {
		add(s, "", 0, 0)
	}
	requested = make(map[string]int)
	for len(requested) < most {
		var next entry
		for _, p := range []int8{probePriority, 0, lastPriority} {
			if q := queues[p]; len(q) > 0 {
				next, queues[p] = q[0], q[1:]
				break
			}
		}
		if next.path == "" {
			break
		}
		if next.depth > 0 && b.IsStopped("site.test", next.path, func() string { return next.via }) {
			refused++
			continue
		}
		requested[next.path]++
		if len(requested) == 55 {
			for i := range of.outside {
				other := must.Get(weburl.Parse(fmt.Sprintf("http://other-%d.test/", i)))(t)
				to := []storage.Found{{URL: urlOf(t, next.path)}, {URL: urlOf(t, "/")}, {URL: urlOf(t, "/2")}}
				b.Links(other, 0, to, "", false)
			}
		}
		var found []storage.Found
		for _, to := range of.links(next.path) {
			u := urlOf(t, to)
			h := fnv.New64a()
			h.Write([]byte(u.String()))
			found = append(found, storage.Found{URL: u, Fingerprint: mix(h.Sum64())})
		}
		text := ""
		if of.text != nil && b.Suspects("site.test") {
			text = of.text(next.path)
		}
		noIndex := of.noIndex && (of.indexed == nil || !of.indexed(next.path))
		kept, out, _ := b.Links(urlOf(t, next.path), next.depth, found, text, noIndex)
		refused += len(out)
		via := next.path
		if next.depth == 0 {
			via = ""
		}
		for _, f := range kept {
			add(f.URL.RequestURI(), via, next.depth+1, f.Priority)
		}
	}
	return requested, refused
}

// mix spreads the bits of a sum, as those of the store are spread.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// random returns a source of numbers that depends on a path alone.
func random(path string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(path))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// TestMazes: each maze costs at most 200 requests, alone and beside a site, whose pages are all requested. After a
// restart none of what waits is requested.
func TestMazes(t *testing.T) {
	for _, m := range zoo.Mazes() {
		name, maze := m.Name, m.Links
		t.Run(name, func(t *testing.T) {
			b := New(40)
			noIndex := strings.Contains(m.Text("/a"), "noindex")
			requested, refused := crawl(t, b, web{links: maze, text: m.Text, noIndex: noIndex}, 5000, m.Start)
			n := len(requested)
			assert.True(t, n <= 200 && refused != 0, "%d requests, want 200 at most; %d refused", n, refused)
			t.Logf("%d requests into %s", len(requested), b.stops["site.test"])
			again := New(40)
			again.Restore(map[string][]byte{Mark + "site.test": []byte(b.Encode("site.test")), "other": nil})
			stopped := b.stops["site.test"]
			assert.True(t, len(stopped) == 1 && again.IsStopped("site.test", stopped[0]+"x/y", nil),
				"a restart forgets it")
			if name == "iocaine" {
				return // it is all of the host
			}
			const pages = 300
			site := wiki(pages)
			b = New(40)
			requested, _ = crawl(t, b, web{links: func(path string) []string {
				if strings.HasPrefix(path, "/wiki/") || path == "/" {
					return append(site(path), m.Start)
				}
				return maze(path)
			}, text: m.Text, noIndex: noIndex}, 5000, "/")
			in := 0
			for path := range requested {
				if strings.HasPrefix(path, "/wiki/") {
					in++
				}
			}
			into := len(requested) - in
			assert.True(t, in == pages && into <= 200, "%d pages of the site, want %d; %d others", in, pages, into)
		})
	}
}

// TestLateMaze: a maze that the last page of a large site leads into costs no more than one at its start, however many
// links the site has.
func TestLateMaze(t *testing.T) {
	const sections = 30
	for _, m := range zoo.Mazes() {
		if m.Name == "iocaine" {
			continue // it is all of the host
		}
		noIndex := strings.Contains(m.Text("/a"), "noindex")
		for _, width := range []int{100, 140, 170, 190, 210, 2000} {
			docs := tree("/docs/", []string{"/docs/", "/docs/0", "/docs/1", "/docs/2"}, sections, width)
			last := fmt.Sprintf("/docs/%d/%d", sections-1, width-1)
			site := web{text: m.Text, noIndex: noIndex, links: func(path string) []string {
				switch {
				case path == last:
					return append(docs(path), m.Start)
				case strings.HasPrefix(path, "/docs/"):
					return docs(path)
				}
				return m.Links(path)
			}}
			want, into := 1+sections+sections*width, 0
			requested, refused := crawl(t, New(40), site, want+2000, "/docs/")
			for path := range requested {
				if !strings.HasPrefix(path, "/docs/") {
					into++
				}
			}
			if len(requested)-into != want || into > 80 || refused == 0 {
				t.Errorf("%s behind %d pages: %d of them, %d requests into the maze, %d refused", m.Name, want,
					len(requested)-into, into, refused)
			}
		}
	}
}

// TestMazeOfAWidePage: a page of very many links makes no link of a maze look known.
func TestMazeOfAWidePage(t *testing.T) {
	for _, width := range []int{1000, 3000, 20_000} {
		wide := tree("/docs/", []string{"/docs/"}, width)
		for _, m := range zoo.Mazes() {
			noIndex := strings.Contains(m.Text("/a"), "noindex")
			site := web{text: m.Text, noIndex: noIndex, links: func(path string) []string {
				switch {
				case path == "/docs/":
					return append([]string{m.Start}, wide(path)...)
				case strings.HasPrefix(path, "/docs/"):
					return wide(path)
				}
				return m.Links(path)
			}}
			into := 0
			requested, refused := crawl(t, New(40), site, width+2000, "/docs/")
			for path := range requested {
				if !strings.HasPrefix(path, "/docs/") {
					into++
				}
			}
			assert.True(t, into <= 200 && refused > 0,
				"%s, linked by a page of %d links: %d requests into the maze, %d refused", m.Name, width, into, refused)
		}
	}
}

// wiki has pages with a frame, and links to others by chance.
func wiki(n int) links {
	return func(path string) (to []string) {
		r := random(path)
		to = []string{"/", "/wiki/0"}
		var at int
		_, _ = fmt.Sscanf(path, "/wiki/%d", &at)
		for i := range 5 {
			to = append(to, fmt.Sprintf("/wiki/%d", (at*5+i+1)%n), fmt.Sprintf("/wiki/%d", r.IntN(n)))
		}
		return to
	}
}

// tree is a site of levels: each page of a level has so many links to the next, besides some that all have.
func tree(prefix string, frame []string, width ...int) links {
	return func(path string) []string {
		depth := 0
		if path != prefix {
			depth = strings.Count(strings.TrimPrefix(path, prefix), "/") + 1
		}
		if depth >= len(width) {
			return frame
		}
		to := slices.Clone(frame)
		for i := range width[depth] {
			if depth == 0 {
				to = append(to, fmt.Sprintf("%s%d", prefix, i))
			} else {
				to = append(to, fmt.Sprintf("%s/%d", path, i))
			}
		}
		return to
	}
}

// site is a site and its first page.
type site struct {
	start string
	links links
}

// pages returns the paths of a site.
func (s site) pages(t *testing.T) []string {
	t.Helper()
	paths, known := []string{s.start}, map[string]bool{s.start: true}
	for i := 0; i < len(paths); i++ {
		for _, to := range s.links(paths[i]) {
			if to = urlOf(t, to).RequestURI(); !known[to] {
				known[to] = true
				paths = append(paths, to)
			}
		}
	}
	return paths
}

// sites are the structures of large sites. none is a frame without a link.
func sites() map[string]site {
	var none []string
	home := []string{"/"}
	docs, shop := []string{"/", "/docs/", "/docs/0", "/docs/1"}, []string{"/", "/shop/", "/cart"}
	api := []string{"/api/", "/search"}
	menu := make([]string, 1200)
	for i := range menu {
		menu[i] = fmt.Sprintf("/menu/%d", i)
	}
	return map[string]site{
		"documentation with a sidebar":             {"/docs/", tree("/docs/", docs, 20, 20, 10)},
		"documentation without a frame":            {"/docs/", tree("/docs/", none, 50, 50)},
		"directory listings of a mirror":           {"/", tree("/", none, 30, 60, 5)},
		"directory listings with a parent":         {"/pub/", withParent(tree("/pub/", none, 20, 40, 10))},
		"deep source tree":                         {"/src/", withParent(tree("/src/", none, 4, 4, 4, 4, 4, 3))},
		"archive by date":                          {"/", tree("/", home, 10, 12, 28, 2)},
		"archive by date, without a frame":         {"/news/", tree("/news/", none, 8, 12, 28, 2)},
		"catalogue by category":                    {"/shop/", tree("/shop/", shop, 15, 15, 20)},
		"catalogue without a frame":                {"/c/", tree("/c/", none, 100, 50)},
		"index of letters":                         {"/words/", tree("/words/", home, 26, 26, 9)},
		"wiki":                                     {"/", wiki(5000)},
		"forum":                                    {"/", forum},
		"mailing list":                             {"/", mailingList},
		"pages of a list, one after the other":     {"/", pages},
		"a comic: previous and next":               {"/", comic},
		"one page with all others":                 {"/all/", tree("/all/", none, 6000)},
		"two levels of eighty":                     {"/h/", tree("/h/", none, 80, 80)},
		"many sections of the first level":         {"/", tree("/", none, 500, 10)},
		"a genealogy: parents and children":        {"/", genealogy},
		"a menu of 1,200 links on each page":       {"/", tree("/", menu, 5, 10)},
		"versions of an interface":                 {"/api/", tree("/api/", api, 12, 30, 15)},
		"question pages with links to related":     {"/", related},
		"a long way down, then a leaf, every time": {"/deep/", tree("/deep/", none, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)},
	}
}

// TestSites: no page of a large site is lost, whatever its structure.
func TestSites(t *testing.T) {
	all := sites()
	assert.True(t, len(all) >= 20, "%d structures", len(all))
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			want := s.pages(t)
			got, refused := crawl(t, New(40), web{links: s.links}, 20000, s.start)
			assert.True(t, len(want) >= 500 && len(got) == len(want) && refused <= 0,
				"%d pages of %d, %d links refused", len(got), len(want), refused)
		})
	}
}

// withParent adds a link to the directory above, as listings have it.
func withParent(of links) links {
	return func(path string) []string {
		return append([]string{path[:strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1]}, of(path)...)
	}
}

// forum has pages of threads, and threads of pages, with links to the next and the previous one only.
func forum(path string) (to []string) {
	var thread, page int
	switch n, _ := fmt.Sscanf(path, "/thread/%d/%d", &thread, &page); {
	case n == 2:
		if page < 5 {
			to = append(to, fmt.Sprintf("/thread/%d/%d", thread, page+1))
		}
		return append(to, "/")
	}
	_, _ = fmt.Sscanf(path, "/page/%d", &page)
	for i := range 20 {
		to = append(to, fmt.Sprintf("/thread/%d/0", page*20+i))
	}
	if page < 40 {
		to = append(to, fmt.Sprintf("/page/%d", page+1))
	}
	return to
}

// mailingList has months, and messages with links to the next and previous ones.
func mailingList(path string) (to []string) {
	var month, message int
	switch n, _ := fmt.Sscanf(path, "/list/%d/%d.html", &month, &message); n {
	case 2:
		return []string{fmt.Sprintf("/list/%d/", month), fmt.Sprintf("/list/%d/%d.html", month, (message+1)%30)}
	case 1:
		for i := range 30 {
			to = append(to, fmt.Sprintf("/list/%d/%d.html", month, i))
		}
		return to
	}
	for i := range 100 {
		to = append(to, fmt.Sprintf("/list/%d/", i))
	}
	return to
}

// pages is a list in pages: each page links to new items and to the next page, and the items have no links.
func pages(path string) (to []string) {
	page := 0
	if strings.HasPrefix(path, "/item/") {
		return nil
	}
	_, _ = fmt.Sscanf(path, "/list?page=%d", &page)
	for i := range 3 {
		to = append(to, fmt.Sprintf("/item/%d", page*3+i))
	}
	if page < 2000 {
		to = append(to, fmt.Sprintf("/list?page=%d", page+1))
	}
	return to
}

// comic has pages in a row with links to the next and the previous one, and to the first.
func comic(path string) []string {
	n := 0
	_, _ = fmt.Sscanf(path, "/strip/%d", &n)
	if n == 3000 {
		return []string{"/"}
	}
	return []string{"/", fmt.Sprintf("/strip/%d", max(n-1, 0)), fmt.Sprintf("/strip/%d", n+1)}
}

// genealogy has people with links to parents and children.
func genealogy(path string) (to []string) {
	n := 1
	_, _ = fmt.Sscanf(path, "/person/%d", &n)
	for _, m := range []int{n / 2, 2 * n, 2*n + 1} {
		if m > 0 && m < 4096 {
			to = append(to, fmt.Sprintf("/person/%d", m))
		}
	}
	return to
}

// related has questions with links to others that are near, and no frame.
func related(path string) (to []string) {
	n := 0
	_, _ = fmt.Sscanf(path, "/q/%d", &n)
	r := random(path)
	for range 6 {
		to = append(to, fmt.Sprintf("/q/%d", (n+1+r.IntN(40))%4000))
	}
	return to
}
