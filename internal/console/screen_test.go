package console

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	log, _ := NewLogger(&b, config.Log{Level: "warn", Format: "json"})
	log.Info("hidden")
	log.Warn("shown", "n", 1)
	if got := b.String(); !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"shown","n":1}`) ||
		strings.Contains(got, "hidden") {
		t.Error(got)
	}
}

// glass is a little terminal: it understands what screen sends and shows what a person would see.
type glass struct {
	t     *testing.T
	width int

	mu     sync.Mutex
	lines  []string
	column int
}

func (g *glass) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for text := string(b); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			text = g.sequence(text[2:])
			continue
		case text[0] == '\r':
			g.column = 0
		case text[0] == '\n':
			g.lines, g.column = append(g.lines, ""), 0
		default:
			g.put(text[0])
		}
		text = text[1:]
	}
	return len(b), nil
}

func (g *glass) put(c byte) {
	if len(g.lines) == 0 {
		g.lines = []string{""}
	}
	if g.column == g.width {
		g.lines, g.column = append(g.lines, ""), 0
	}
	g.lines[len(g.lines)-1] += string(c)
	g.column++
}

// sequence understands up with erase to the end, and styles.
func (g *glass) sequence(text string) string {
	end := strings.IndexAny(text, "AJm")
	switch text[end] {
	case 'A':
		n := 0
		for _, d := range text[:end] {
			n = n*10 + int(d-'0')
		}
		if n >= len(g.lines) {
			g.t.Errorf("up %d lines of %d", n, len(g.lines)-1)
			n = len(g.lines) - 1
		}
		if !strings.HasPrefix(text[end+1:], "\x1b[J") {
			g.t.Error("moves up and does not erase")
		}
		g.lines = append(g.lines[:len(g.lines)-1-n], "")
	case 'm':
	}
	return text[end+1:]
}

func (g *glass) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

func TestScreenRedrawsBlock(t *testing.T) {
	g := &glass{t: t, width: 20}
	s := &Screen{W: g, Size: func() (int, int) { return g.width, 10 }, colour: true}
	s.Draw(Row{"one", StyleTitle}, Row{"two", styleNone})
	if got := g.String(); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	io.WriteString(s, "a line of the log that is longer than the screen is wide\n")
	s.Draw(Row{"three", StyleDanger}, Row{strings.Repeat("x", 100), styleNone}, Row{"end", styleNone})
	if got := g.String(); got != "a line of the log th\nat is longer than th\ne screen is wide\nthree\n"+
		strings.Repeat("x", 16)+"...\nend\n" {
		t.Errorf("%q", got)
	}
	s.Draw()
	if got := g.String(); got != "a line of the log th\nat is longer than th\ne screen is wide\n" {
		t.Errorf("%q", got)
	}
}

// A block that is higher than the screen would scroll it, and could not be erased.
func TestScreenFitsTheHeight(t *testing.T) {
	g := &glass{t: t, width: 20}
	s := &Screen{W: g, Size: func() (int, int) { return 20, 3 }}
	for range 3 {
		s.Draw(Row{Text: "a"}, Row{Text: "b"}, Row{Text: "c"}, Row{Text: "d"})
	}
	if got := g.String(); got != "a\nb\n" {
		t.Errorf("%q", got)
	}
	s.Size = func() (int, int) { return 1, 1 }
	s.Draw(Row{Text: "a"})
	if got := g.String(); got != "" {
		t.Errorf("%q", got)
	}
}

// When the window becomes narrower, the terminal wraps what is drawn, and all of it has to go.
func TestScreenCountsWrappedRows(t *testing.T) {
	var b bytes.Buffer
	width := 40
	s := &Screen{W: &b, Size: func() (int, int) { return width, 10 }}
	s.Draw(Row{Text: strings.Repeat("x", 39)}, Row{Text: "short"})
	b.Reset()
	width = 13
	s.Draw(Row{Text: "y"})
	if got := b.String(); got != "\r\x1b[4A\x1b[Jy\n" {
		t.Errorf("%q, want it to go up three lines and one", got)
	}
}

func TestColourOnlyWhereWanted(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{W: &b, Size: func() (int, int) { return 40, 10 }}
	s.Draw(Row{"x", StyleTitle})
	if got := b.String(); got != "x\n" {
		t.Errorf("%q", got)
	}
}

func TestScreenManyWriters(t *testing.T) {
	g := &glass{t: t, width: 80}
	s := &Screen{W: g, Size: func() (int, int) { return 80, 10 }}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				io.WriteString(s, "line\n")
				s.Draw(Row{Text: "block"}, Row{Text: "block"})
			}
		})
	}
	wg.Wait()
	if got, want := g.String(), strings.Repeat("line\n", 400)+"block\nblock\n"; got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

func TestNoScreen(t *testing.T) {
	if NewScreen(&bytes.Buffer{}) != nil {
		t.Error("a buffer is no terminal")
	}
	file := must.Get(os.Create(t.TempDir() + "/file"))(t)
	defer file.Close()
	if NewScreen(file) != nil {
		t.Error("a file is no terminal")
	}
}

// On a screen the block is drawn at once and again, and gone at the end.
func TestProgressOnAScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{t: t, width: 80}
		s := &Screen{W: g, Size: func() (int, int) { return 80, 24 }}
		stop := Watch(Progress{
			Rows: func(int) []Row { return []Row{{Text: "pages     1,234"}} },
		}, s)
		if !strings.Contains(g.String(), "pages     1,234") {
			t.Errorf("not drawn at once: %q", g.String())
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := strings.Count(g.String(), "pages"); n != 1 {
			t.Errorf("%d blocks after 5 s", n)
		}
		stop()
		if g.String() != "" {
			t.Errorf("left at the end: %q", g.String())
		}
	})
}
