package frontier

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func mustURL(t *testing.T, s string) weburl.URL {
	t.Helper()
	if s == "" {
		return weburl.URL{}
	}
	return must.Get(weburl.Parse(s))(t)
}

// testTrapOptions are the bounds that docs/TRAPS.md gives examples of.
func testTrapOptions() TrapOptions {
	return TrapOptions{PathDepth: 25, RepeatedSegments: 3, QueryParameters: 20, Calendar: true, Refresh: true}
}

func TestTrapCheck(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	o := testTrapOptions()
	for _, c := range []struct {
		url, via string
		want     storage.Trap
	}{
		{"/", "", storage.NoTrap},
		{"/a/b/c/d/e/f/g", "", storage.NoTrap},
		{strings.Repeat("/x", 3) + strings.Repeat("/y", 3) + "/z", "", storage.NoTrap},
		{"/docs/" + strings.Repeat("deep/er/than/any/", 1), "", storage.NoTrap},
		{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25", "", storage.NoTrap},
		{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26", "", storage.TrapDepth},

		{"/a/a/a/x", "", storage.NoTrap}, // three times, that is twice again
		{"/a/a/a/a/x", "", storage.TrapRepetition},
		{"/p/a/b/a/b/a/b/q", "", storage.NoTrap},
		{"/p/a/b/a/b/a/b/a/b/q", "", storage.TrapRepetition},
		{"/css/img/css/js/css/img", "", storage.NoTrap},
		{"/2/2/2/2", "", storage.TrapRepetition},

		{"/s?" + strings.Repeat("a=1&", 20), "", storage.NoTrap},
		{"/s?" + strings.Repeat("a=1&", 21), "", storage.TrapParameters},
		{"/s?" + strings.Repeat("&", 100), "", storage.NoTrap},

		{"/s?x=1&p=2", "/s?x=1", storage.NoTrap},
		{"/s?x=1&p=2&p=2&p=2", "/s?x=1&p=2&p=2", storage.NoTrap},
		{"/s?x=1&p=2&p=2&p=2&p=2", "/s?x=1&p=2&p=2&p=2", storage.TrapGrowth},
		{"/s?x=1&p=2&p=2&p=2&p=3", "/s?x=1&p=2&p=2&p=2", storage.NoTrap},

		{"/2026/11/21/news", "", storage.NoTrap},
		{"/2028/12/31/", "", storage.NoTrap},
		{"/2029/01/02", "", storage.TrapCalendar},
		{"/2029-01/", "", storage.TrapCalendar},
		{"/calendar/2029/1/", "", storage.TrapCalendar},
		{"/1969/12/31", "", storage.TrapCalendar},
		{"/1970-01-01", "", storage.NoTrap},
		{"/events/3012-07", "", storage.TrapCalendar},
		{"/article/3421/12", "", storage.NoTrap}, // the twelfth page of an article
		{"/article/3421/2/3", "", storage.NoTrap},
		{"/model-x3012-07", "", storage.NoTrap},
		{"/?year=2031&month=5", "", storage.TrapCalendar},
		{"/?year=2027&month=5", "", storage.NoTrap},
		{"/calendar/20310517", "", storage.TrapCalendar},
		{"/calendar?date=203105", "", storage.TrapCalendar},
		{"/item/20310517", "", storage.NoTrap}, // an id
		{"/page/4096", "", storage.NoTrap},
		{"/1066/hastings", "", storage.NoTrap}, // a year, but no month
		{"/range/1800-1850/", "", storage.NoTrap},
		{"/rfc/9309/12-13", "", storage.NoTrap},
		{"/part/9309-12-13", "", storage.TrapCalendar}, // cannot be told from a date
	} {
		var via string
		if c.via != "" {
			via = "http://example.com" + c.via
		}
		assert.Equal(t, o.Check(mustURL(t, "http://example.com"+c.url), mustURL(t, via), now), c.want, c.url,
			"found on", c.via)
	}
}

func TestTrapChecksCanBeSwitchedOff(t *testing.T) {
	var off TrapOptions
	for _, uri := range []string{strings.Repeat("/a", 100), "/?" + strings.Repeat("a=1&", 90), "/9999/12/31"} {
		assert.Equal(t, off.Check(mustURL(t, "http://example.com"+uri), weburl.URL{}, time.Unix(1.8e9, 0)),
			storage.NoTrap, uri)
	}
}

func TestSessionsStrip(t *testing.T) {
	s := NewSessions(SessionNames())
	for _, c := range []struct{ uri, want string }{
		{"/a?b=1", "/a?b=1"},
		{"/a?sid=1", "/a"},
		{"/a?b=1&SID=77&c=2", "/a?b=1&c=2"},
		{"/a?b=1&PHPSESSID=abc", "/a?b=1"},
		{"/a?ASPSESSIONIDQQ=1&b", "/a?b"},
		{"/a;jsessionid=12AB?b=1", "/a?b=1"},
		{"/a;jsessionid=12AB/c;v=1", "/a/c;v=1"},
		{"/a;v=1;jsessionid=2", "/a;v=1"},
		{"/a?side=left", "/a?side=left"},
		{"/a?sid=", "/a?sid="},
		{"/a?sid", "/a?sid"},
		{"/sid=1/x", "/sid=1/x"},
		{"/a;sid=1;v=2;sid=3/b;sid=4/;sid=5;c?sid=6", "/a;v=2/b/;c"},
		{strings.Repeat("/a;sid=1;v=2", 100), strings.Repeat("/a;v=2", 100)},
	} {
		got, has := s.Strip(c.uri)
		assert.True(t, got == c.want && has == (c.want != c.uri), "%s: %q, %v; want %q", c.uri, got, has, c.want)
	}
	got, has := NewSessions(nil).Strip("/a?sid=1")
	assert.True(t, !has && got == "/a?sid=1", "without names: %q, %v", got, has)
}

// The cost of a URL of nothing but session ids, or of nothing but numbers, is that of its length.
func TestLongURLsAreChecked(t *testing.T) {
	s := NewSessions(SessionNames())
	path := strings.Repeat(";v=1;sid=1", 180)
	if n := testing.AllocsPerRun(10, func() { s.Strip("/" + path) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}

// stripPathByParts is stripPath, part by part.
func stripPathByParts(s *Sessions, path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		parameters := strings.Split(segment, ";")
		segments[i] = strings.Join(append(parameters[:1:1], slices.DeleteFunc(parameters[1:], s.isSession)...), ";")
	}
	return strings.Join(segments, "/")
}

func FuzzTrapCheck(f *testing.F) {
	f.Add("/a/b?c=d", "/a")
	f.Add("/2031/12/", "/2031/11/")
	f.Add("/a;jsessionid=1;;/?&&sid=1&", "")
	o := testTrapOptions()
	s := NewSessions(SessionNames())
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, uri, via string) {
		u, err := weburl.Parse("http://example.com" + uri)
		if err != nil {
			return
		}
		from, _ := weburl.Parse("http://example.com" + via)
		o.Check(u, from, now)
		stripped, has := s.Strip(u.RequestURI())
		must.True(t, has != (stripped == u.RequestURI()), "%q stripped to %q, %v", u.RequestURI(), stripped, has)
		again, more := s.Strip(stripped)
		must.True(t, !more && again == stripped, "%q stripped twice: %q", uri, again)
		if got, _ := s.stripPath(uri); got != stripPathByParts(s, uri) {
			t.Errorf("%q stripped to %q, want %q", uri, got, stripPathByParts(s, uri))
		}
		for i := range uri {
			hasAddress := slices.ContainsFunc([]string{"calendar", "kalender", "calendrier", "events", "agenda"},
				func(word string) bool {
					return strings.Contains(uri[:i], word)
				})
			assert.Equal(t, hasAddress, (calendarWord(uri) <= i), uri, "a calendar before", i, "its word ends at",
				calendarWord(uri))
		}
	})
}

// TestDocumentedTraps compares the examples of docs/TRAPS.md with the checks.
func TestDocumentedTraps(t *testing.T) {
	file := must.Get(os.Open("../docs/TRAPS.md"))(t)
	defer file.Close()
	o := testTrapOptions()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	seen := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), "|")
		cell := func(fromEnd int) string { return strings.Trim(cells[len(cells)-fromEnd], " `") }
		if len(cells) < 3 || !strings.HasPrefix(cell(2), "/") || !strings.HasPrefix(cell(3), "/") {
			continue
		}
		page := mustURL(t, "https://example.com"+cell(3))
		got := o.Check(mustURL(t, "https://example.com"+cell(2)), page, now).String()
		want := cell(1)
		if want == "no" {
			want = storage.NoTrap.String()
		}
		if got != want {
			t.Errorf("%s on %s: %s, the page says %s", cell(2), cell(3), got, want)
		}
		seen[got]++
	}
	for trap := storage.TrapDepth; trap <= storage.TrapGrowth; trap++ {
		assert.Not(t, seen[trap.String()], 0, "no example of", trap)
	}
	assert.AtLeast(t, seen["none"], 5, "examples of links that are taken")
}
