package maze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// shapes are mazes by where their pages are.
func shapes() map[string]links {
	names := func(path string, n int, form string) (to []string) {
		r := random(path)
		for range n {
			to = append(to, fmt.Sprintf(form, r.Uint64(), r.Uint64()))
		}
		return to
	}
	return map[string]links{
		"a directory":             func(p string) []string { return names(p, 6, "/m/%x/%x") },
		"query of the root":       func(p string) []string { return names(p, 6, "/?id=%x&t=%x") },
		"query of a script":       func(p string) []string { return names(p, 6, "/m/index.php?id=%x&t=%x") },
		"files at the root":       func(p string) []string { return names(p, 6, "/%x-%x") },
		"directories at the root": func(p string) []string { return names(p, 6, "/%x/%x/") },
		"mixed": func(p string) []string {
			return slices.Concat(names(p, 2, "/m/%x/%x"), names(p+"a", 2, "/m?%x=%x"), names(p+"b", 2, "/%x/m/%x/"))
		},
	}
}

// TestMazesWithRealLinks: a maze whose pages each link to eight pages of the site gets at most 200 requests, whether
// these are always the same or others on each page, and all pages of the site are requested.
func TestMazesWithRealLinks(t *testing.T) {
	mazes := zoo.Mazes()
	for name, l := range shapes() {
		mazes = append(mazes, zoo.Maze{Name: name, Start: "/m/start", Links: l, Text: zoo.Babble})
	}
	kinds := map[string]struct {
		start string
		links func(size int) links
	}{
		"a wiki":                {"/", wiki},
		"a tree without a menu": {"/docs/", func(size int) links { return tree("/docs/", nil, 50, size/50-1) }},
		"a list of posts": {"/wiki/", func(size int) links {
			return tree("/wiki/", []string{"/wiki/", "/wiki/0", "/wiki/1", "/wiki/2", "/wiki/3"}, size/50, 49)
		}},
	}
	most := 0
	for _, m := range mazes {
		if m.Start == "/" {
			continue // it is all of the host
		}
		for kind, of := range kinds {
			for _, size := range []int{300, 2000, 20_000} {
				if size > 2000 && (kind != "a wiki" || !strings.HasPrefix(m.Name, "directories")) {
					continue
				}
				targets := site{of.start, of.links(size)}.pages(t)
				isPage := make(map[string]bool)
				for _, path := range targets {
					isPage[path] = true
				}
				for _, isMenu := range []bool{false, true} {
					requested, refused := crawl(t, New(40), web{
						text: func(path string) string {
							if isPage[path] {
								return zoo.Prose(path)
							}
							return m.Text(path)
						},
						noIndex: strings.Contains(m.Text("/a"), "noindex"),
						indexed: func(path string) bool { return isPage[path] },
						links: func(path string) []string {
							if isPage[path] {
								return append(of.links(size)(path), m.Start)
							}
							to, r := m.Links(path), random(path)
							for i := range 8 {
								if !isMenu {
									i = r.IntN(len(targets))
								}
								to = append(to, targets[i])
							}
							return to
						},
					}, min(size+2000, 5000), of.start)
					in := 0
					for path := range requested {
						if isPage[path] {
							in++
						}
					}
					into := len(requested) - in
					most = max(most, into)
					assert.True(t, in >= min(len(targets), 4800) && into <= 200 && (refused > 0 || size > 2000),
						"%s, whose links into %s of %d are the same: %v: %d pages, %d requests into the maze",
						m.Name, kind, size, isMenu, in, into)
				}
			}
		}
	}
	t.Logf("%d requests at most", most)
}

// menu is what each page of a shop links to.
var menu = []string{"/", "/about/", "/help/", "/cart/", "/c/0", "/c/1", "/c/2", "/terms/", "/login?next=1"}

// shop has lists of products, and products with links to others by chance.
func shop(products int, form string) links {
	return func(path string) []string {
		to, of, page := slices.Clone(menu), 0, 0
		if n, _ := fmt.Sscanf(path, "/c/%d?page=%d", &of, &page); n > 0 {
			for i := range 20 {
				to = append(to, fmt.Sprintf(form, (of*100+page*20+i)%products))
			}
			if page < 4 {
				to = append(to, fmt.Sprintf("/c/%d?page=%d", of, page+1))
			}
			return to
		}
		if path == "/" {
			for i := range products / 100 {
				to = append(to, fmt.Sprintf("/c/%d", i))
			}
		}
		if n, _ := fmt.Sscanf(path, form, &of); n == 1 {
			r := random(path)
			for range 6 {
				to = append(to, fmt.Sprintf(form, r.IntN(products)))
			}
		}
		return to
	}
}

// users has people with things of theirs, and people whom they know, in directories of their own.
func users(path string) []string {
	to, user, thing := []string{"/", "/features/", "/pricing/", "/login", "/explore/", "/about/"}, 0, 0
	friend := func(n int) string { return fmt.Sprintf("/u%d/", n%400) }
	r := random(path)
	switch n, _ := fmt.Sscanf(path, "/u%d/r%d", &user, &thing); n {
	case 2:
		return append(to, friend(user), friend(r.IntN(400)), friend(r.IntN(400)))
	case 1:
		for i := range 10 {
			to = append(to, fmt.Sprintf("/u%d/r%d", user, i))
		}
	}
	for range 6 {
		to = append(to, friend(r.IntN(400)))
	}
	return to
}

// TestSitesWithMenus: sites whose menu is no evidence that they are none of a maze lose nothing: those of TestSites,
// shops and people's pages, whatever their text.
func TestSitesWithMenus(t *testing.T) {
	all := map[string]site{
		"products in a directory": {"/", shop(5000, "/p/%d")}, "products at the root": {"/", shop(2000, "/p-%d.html")},
		"a directory for each product": {"/", shop(2000, "/p-%d/")}, "people": {"/", users},
	}
	table := func(path string) string { // with values by chance
		r := random(path)
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, "Attribute%c: value%c%c%c\n", 'a'+i%26, 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(6))
		}
		return b.String()
	}
	none := func(string) string { return "" }
	check := func(name string, s site, text func(string) string, noIndex bool) {
		want := s.pages(t)
		got, refused := crawl(t, New(40), web{links: s.links, text: text, noIndex: noIndex}, 20000, s.start)
		assert.True(t, len(want) >= 500 && len(got) == len(want) && refused <= 0,
			"%s: %d pages of %d, %d links refused", name, len(got), len(want), refused)
	}
	for name, s := range all {
		check(name, s, none, false)
		check(name+", of tables", s, table, false)
		check(name+", with texts and noindex", s, zoo.Prose, true)
	}
	for name, s := range sites() {
		if strings.HasPrefix(name, "a menu of") {
			continue
		}
		for where, links := range map[string][]string{"elsewhere": menu, "inside": nil} {
			for i := 0; where == "inside" && i < 8; i++ {
				links = append(links, fmt.Sprintf("%smenu%d", s.start, i))
			}
			check(name+", with a menu "+where, site{s.start, func(path string) []string {
				if slices.Contains(links, path) && path != s.start {
					return links
				}
				return slices.Concat(links, s.links(path))
			}}, none, false)
		}
	}
}
