package config

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/urllist"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func TestSeedsHaveSources(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "seeds.txt", "\ufeffhttps://one.example/\r\n\r\n# a comment\r\n  https://two.example/a#top # "+
		"why\r\nftp://three.example/\r\nhttps://four.example")
	write(t, "config.yaml", `crawl:
  seeds_file: seeds.txt
  seeds:
    - https://five.example/
    - six.example
    - "https://"
`)
	c := must.Get(Load("", nil, nil))(t)
	good, bad := readSeeds(c, []string{"https://seven.example/", "not a url", "seeds.txt"})
	var got []string
	for _, s := range good {
		got = append(got, s.Source+" "+s.URL.String())
	}
	want := []string{
		"config.yaml:4 https://five.example/",
		"config.yaml:5 https://six.example/",
		"seeds.txt:1 https://one.example/",
		"seeds.txt:4 https://two.example/a",
		"seeds.txt:6 https://four.example/",
		"argument 1 https://seven.example/",
	}
	assert.Slice(t, got, want, "good seeds")
	got = nil
	for _, b := range bad {
		got = append(got, b.String())
	}
	want = []string{
		`config.yaml:6: read "https://"; has no host; want a URL such as https://example.com/`,
		`seeds.txt:5: read "ftp://three.example/"; ftp is not supported; want a URL that begins with http:// or https://`,
		`argument 2: read "not a url"; is not a URL; want one such as https://example.com/, or a host such as example.com`,
		`argument 3: read "seeds.txt"; is a file, not a URL; to read seeds from it use --set crawl.seeds_file=seeds.txt`,
	}
	assert.Slice(t, got, want, "bad seeds")
}

func parse(text string) (weburl.URL, string) {
	item, err := seeds.ParseLine(text)
	if err != nil {
		return item.URL, err.Error()
	}
	return item.URL, ""
}

func TestSeedReasons(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("a", 3000)
	tests := []struct{ text, want string }{
		{"hello", "is not a URL; want one such as https://example.com/, or a host such as example.com"},
		{"mailto:a@example.com", "is not a URL; want one such as https://example.com/, or a host such as example.com"},
		{`C:\seeds.txt`, "is not a URL; want one such as https://example.com/, or a host such as example.com"},
		{"ftp://example.com/", "ftp is not supported; want a URL that begins with http:// or https://"},
		{"http://", "has no host; want a URL such as https://example.com/"},
		{"https:///?q", "has no host; want a URL such as https://example.com/"},
		{long, "is too long (3020 bytes); a URL may have 2048 bytes"},
		{"https://a.example/ https://b.example/",
			"https://b.example/: want FIELD=VALUE such as tags=news behind the URL, and no other white space: " +
				"in a URL it is written %20"},
		{"\xff\xfeh", "is not UTF-8 text; want a URL such as https://example.com/"},
		{"https://a.example/\x00", "is not UTF-8 text; want a URL such as https://example.com/"},
		{"  ", "is empty; want a URL such as https://example.com/"},
	}
	for _, tt := range tests {
		if u, got := parse(tt.text); got != tt.want || !u.IsZero() {
			t.Errorf("seeds.ParseLine(%.40q)\n got %q %q\nwant %q", tt.text, u, got, tt.want)
		}
	}
	if _, got := parse("https://example.com:99999/"); !strings.HasPrefix(got,
		"is not a URL that can be fetched (malformed URL") {
		t.Errorf("a port that is none: %q", got)
	}
}

func TestSeedsFileThatCannotBeRead(t *testing.T) {
	for _, name := range []string{"nowhere.txt", "."} {
		c := must.Get(inFile(t, "crawl:\n  seeds_file: "+name+"\n  seeds: [https://good.example/]\n", nil, nil))(t)
		good, bad := readSeeds(c, nil)
		must.True(t, len(good) == 1 && len(bad) == 1, "%s: %d good and %d bad seeds, want one of each", name, len(good),
			len(bad))
		got := bad[0].String()
		assert.True(t, strings.Contains(got, "config.yaml:2: crawl.seeds_file: ") &&
			strings.Contains(got, " cannot be read: "), "%s: %s", name, got)
	}
}

// A seeds file is hostile until read: a line without end and a file that is no text cost no memory.
func TestSeedsFileIsBounded(t *testing.T) {
	var good []crawl.Seed
	var bad []BadSeed
	v := seedVisitor{good: func(s crawl.Seed) { good = append(good, s) }, bad: func(b BadSeed) { bad = append(bad, b) }}

	endless := io.LimitReader(repeat('a'), 64<<20)
	body := io.MultiReader(endless, strings.NewReader("\nhttps://after.example/\n"))
	must.Do(t, v.visitLines(body, "f"))
	assert.True(t, len(good) == 1 && good[0].Source == "f:2" && len(bad) == 1 &&
		strings.Contains(bad[0].Reason, "too long (67108865 bytes)"), "good %v, bad %v", good, bad)
	if len(bad) > 0 && len(bad[0].Text) > 300 {
		t.Errorf("%d bytes of a bad line are kept", len(bad[0].Text))
	}

	good, bad = nil, nil
	must.Do(t, v.visitLines(strings.NewReader(strings.Repeat("x\n", 5000)), "f"))
	if len(bad) != maxBadLines+1 || bad[maxBadLines].String() != "f: 4000 more lines are bad; is this a list of URLs?" {
		t.Errorf("%d bad seeds, the last: %v", len(bad), bad[len(bad)-1])
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func TestLineOfExactlyTheLongestLength(t *testing.T) {
	for _, end := range []string{"", "\n", "\nhttps://b.example/"} {
		line := "https://a.example/ #"
		line += strings.Repeat("c", urllist.MaxLine-len(line))
		var good int
		v := seedVisitor{good: func(crawl.Seed) { good++ }, bad: func(b BadSeed) { t.Error(b) }}
		err := v.visitLines(strings.NewReader(line+end), "f")
		assert.True(t, err == nil && good >= 1, "end %q: %d seeds, %v", end, good, err)
	}
}

func FuzzSeedLines(f *testing.F) {
	for _, body := range []string{"", "\ufeff#x\r\nhttps://a.example/ # b\n", "example.com\n\n", "\x00\xff",
		strings.Repeat("h", 9000), "https://[::1]:0/\n"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		lines := strings.Count(body, "\n") + 1
		seen := 0
		v := seedVisitor{
			good: func(s crawl.Seed) {
				seen++
				assert.Returns(weburl.Parse(s.URL.String()))(t, s.URL, "seed is not canonical")
			},
			bad: func(b BadSeed) {
				seen++
				if text := b.String(); strings.ContainsAny(text, "\r\n") || len(text) > 1000 {
					t.Errorf("report of a bad seed: %q", text)
				}
			},
		}
		err := v.visitLines(strings.NewReader(body), "f")
		assert.True(t, err == nil && seen <= lines+1, "%d seeds of %d lines, %v", seen, lines, err)
	})
}

func write(t *testing.T, name, body string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(".", name), []byte(body), 0o644))
}

func TestSeedPriorities(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "seeds.txt", `https://one.example/ priority=5
https://two.example/	priority=-100 # last
https://three.example/
https://four.example/?priority=5
https://five.example/ priority=101
https://six.example/ priority=
https://seven.example/ priority=1.5
https://eight.example/ importance=5
priority=5
not a url priority=5
`)
	good, bad := readSeeds(&Config{Crawl: Crawl{SeedsFile: "seeds.txt",
		Seeds: []string{"https://nine.example/ priority=5"}}}, nil)
	got := map[string]int8{}
	for _, s := range good {
		got[s.URL.Host()] = s.Priority
	}
	want := map[string]int8{
		"one.example": 5, "two.example": -100, "three.example": 0, "four.example": 0, "nine.example": 5,
	}
	assert.True(t, maps.Equal(got, want), "good seeds %v, want %v", got, want)
	var lines []string
	for _, b := range bad {
		lines = append(lines, b.String())
	}
	const outOfRange = "priority: want a whole number from -100 to 100"
	wantBad := []string{
		`seeds.txt:5: read "https://five.example/ priority=101"; ` + outOfRange,
		`seeds.txt:6: read "https://six.example/ priority="; ` + outOfRange,
		`seeds.txt:7: read "https://seven.example/ priority=1.5"; ` + outOfRange,
		`seeds.txt:8: read "https://eight.example/ importance=5"; importance: is no field of a seed; ` +
			`want scope, include, exclude, max_depth, max_pages, hops, links, priority, recrawl, tags or store`,
		`seeds.txt:9: read "priority=5"; is not a URL; want one such as https://example.com/, or a host such as example.com`,
		`seeds.txt:10: read "not a url priority=5"; is not a URL; ` +
			`want one such as https://example.com/, or a host such as example.com`,
	}
	assert.Slice(t, lines, wantBad, "bad seeds")
}

// readSeeds returns what VisitSeeds passes on.
func readSeeds(c *Config, extra []string) (good []crawl.Seed, bad []BadSeed) {
	VisitSeeds(c, extra, func(s crawl.Seed) { good = append(good, s) }, func(b BadSeed) { bad = append(bad, b) })
	return good, bad
}
