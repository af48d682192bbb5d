package expensive

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestForms reads testdata/urls.txt: URLs in the forms that each product writes, those that are
// expensive and those that are its pages, and URLs of other sites that look like them.
func TestForms(t *testing.T) {
	l := NewList()
	found := make(map[int]bool)
	for fields := range lines(t, "testdata/urls.txt") {
		must.True(t, len(fields) == 3, "%q, want: class, product of the page, target", fields)
		class, product, target := fields[0], fields[1], fields[2]
		var on Products
		if product != "-" {
			on = l.products1(t, strings.ReplaceAll(product, "_", " "))
		}
		n := l.Find(target, on)
		switch {
		case class == "page" && n != nil:
			t.Errorf("%s on a page of %s: %s, want a page", target, product, n)
		case class != "page" && (n == nil || strings.ReplaceAll(n.Class, " ", "_") != class):
			t.Errorf("%s on a page of %s: %v, want %s", target, product, n, class)
		}
		if n != nil {
			found[n.Number] = true
		}
	}
	for _, n := range l.all() {
		assert.True(t, found[n.Number], "%s: no URL of testdata/urls.txt is of it", n)
	}
}

// products1 returns the set of one product by its name.
func (l *List) products1(t *testing.T, name string) Products {
	t.Helper()
	for i, p := range l.products {
		if p == name {
			return 1 << i
		}
	}
	t.Fatalf("no product %q", name)
	return 0
}

func (l *List) all() (all []*Line) {
	for _, by := range []map[string][]*Line{l.segments.lines, l.names.lines} {
		for _, lines := range by {
			all = append(all, lines...)
		}
	}
	return all
}

func lines(t *testing.T, name string) func(func([]string) bool) {
	t.Helper()
	f := must.Get(os.Open(name))(t)
	return func(yield func([]string) bool) {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if text := s.Text(); text != "" && text[0] != '#' && !yield(strings.Fields(text)) {
				return
			}
		}
	}
}

func TestProducts(t *testing.T) {
	l := NewList()
	for _, c := range []struct {
		generator, cookie, want string
	}{
		{"MediaWiki 1.43.0-wmf.2", "", "MediaWiki"},
		{"DokuWiki", "", "DokuWiki"},
		{"cgit v1.2.3", "", "cgit"},
		{"gitweb/2.47.1 git/2.47.1", "", "gitweb"},
		{"Discourse 3.4.0 - https://github.com/discourse/discourse version 1", "", "Discourse"},
		{"WooCommerce 9.1.2", "", "WooCommerce"},
		{"", "i_like_gitea=9f0; Path=/; HttpOnly", "Gitea and Forgejo"},
		{"", "_gitlab_session=1; path=/", "GitLab"},
		{"", "phpbb3_ab_sid=7; path=/", "phpBB"},
		{"", "PrestaShop-1f=2; path=/", "PrestaShop"},
		{"WordPress 6.6", "session=1", ""},
	} {
		want := Products(0)
		if c.want != "" {
			want = l.products1(t, c.want)
		}
		got := l.Products(c.generator, []string{c.cookie})
		assert.True(t, got == want, "%q, %q: %b, want %b", c.generator, c.cookie, got, want)
	}
}

func TestUnreadableLists(t *testing.T) {
	for _, text := range []string{
		"a | b | url | path=x | source", "a | b | url | path=x | source | today",
		"a | b | site | path=x | s | 2026-11-24",
		"a | b | url | hash | s | 2026-11-24", "a | b | url | word=x | s | 2026-11-24",
		"a | b | url | path=... | s | 2026-11-24",
		"a | b | url | query=x* | s | 2026-11-24", "a | mark | - | title=x | s | 2026-11-24",
		"a | b | url | path=x depth=y | s | 2026-11-24",
		" | b | url | path=x | s | 2026-11-24",
	} {
		_, err := parse("# comment\n" + text)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "line 2: "), "%q: %v", text, err)
	}
}

func TestModes(t *testing.T) {
	for _, m := range []Mode{Crawl, Skip, Last} {
		got, ok := ParseMode(m.String())
		assert.True(t, ok && got == m, "%s: %s, %v", m, got, ok)
	}
	_, ok := ParseMode("never")
	assert.True(t, !ok, "never is a mode")
}

func FuzzFind(f *testing.F) {
	l := NewList()
	f.Add("/a/b/commit/"+strings.Repeat("0", 40), "?id="+strings.Repeat("f", 64))
	f.Add("/w/index.php?title=Special:X", "&&;;=;a=b")
	f.Fuzz(func(t *testing.T, path, query string) {
		n := l.Find(path+query, AnyProduct)
		if l.Find(path+query, 0) != nil && n == nil {
			t.Errorf("%s is expensive on no page, and is not on one", strconv.Quote(path+query))
		}
	})
}

func BenchmarkFind(b *testing.B) {
	l := NewList()
	for b.Loop() {
		must.True(b, l.Find("/documentation/guides/2026/installation.html?version=12&lang=en", AnyProduct) == nil,
			"expensive")
	}
}
