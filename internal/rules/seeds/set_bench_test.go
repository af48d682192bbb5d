package seeds

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// many returns seeds; the n-th has the URL that format makes of n.
func many(b testing.TB, n int, format string, fields ...string) (all []Seed) {
	for i := range n {
		u := must.Get(weburl.Parse(fmt.Sprintf(format, i)))(b)
		s := Seed{URL: u}
		for _, text := range fields {
			must.Do(b, s.SetAll([]string{strings.ReplaceAll(text, "%d", strconv.Itoa(i))}))
		}
		all = append(all, s)
	}
	return all
}

var webs = []struct {
	name, format string
	fields       []string
	url          string
}{
	{"OfHosts", "https://h%d.test/", nil, "https://h77.test/a/b/c?d"},
	{"OfHostsWithTags", "https://h%d.test/", []string{"tags=t%d"}, "https://h77.test/a/b/c?d"},
	{"OfOneHost", "https://h.test/f%d/", []string{"scope=prefix"}, "https://h.test/f77/b/c?d"},
	{
		"OfOneDomain", "https://h%d.example.com/", []string{"scope=domain", "include=/only%d/"},
		"https://h.example.com/f77/b/c?d",
	},
	{"OfOneHostNone", "https://h.example.com/%d", []string{"include=/only%d/"}, "https://h.example.com/f77/b/c?d"},
}

func BenchmarkHomeOf10kSeeds(b *testing.B) {
	for _, w := range webs {
		b.Run(w.name, func(b *testing.B) {
			set := NewSet(ModeHost).With(many(b, 10_000, w.format, w.fields...))
			u, _ := weburl.Parse(w.url)
			for b.Loop() {
				set.Home(u)
			}
		})
	}
}

func BenchmarkAdd10kSeeds(b *testing.B) {
	for _, w := range webs {
		b.Run(w.name, func(b *testing.B) {
			all := many(b, 10_000, w.format, w.fields...)
			for b.Loop() {
				NewSet(ModeHost).With(all)
			}
		})
	}
}

func BenchmarkAddOneTo10kSeeds(b *testing.B) {
	for _, w := range webs {
		b.Run(w.name, func(b *testing.B) {
			all := many(b, 10_001, w.format, w.fields...)
			set := NewSet(ModeHost).With(all[1:])
			for b.Loop() {
				set.With(all[:1])
			}
		})
	}
}
