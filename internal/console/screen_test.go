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
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	log, _ := NewLogger(&b, config.Log{Level: "warn", Format: "json"})
	log.Info("hidden")
	log.Warn("shown", "n", 1)
	got := b.String()
	assert.True(t, strings.HasPrefix(got, "{") && strings.Contains(got, `"msg":"shown","n":1}`) &&
		!strings.Contains(got, "hidden"), "%v", got)
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
		assert.True(g.t, strings.HasPrefix(text[end+1:], "\x1b[J"), "moves up and does not erase")
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
	assert.Equal(t, g.String(), "one\ntwo\n")
	io.WriteString(s, "a line of the log that is longer than the screen is wide\n")
	s.Draw(Row{"three", StyleDanger}, Row{strings.Repeat("x", 100), styleNone}, Row{"end", styleNone})
	assert.Equal(t, g.String(),
		"a line of the log th\nat is longer than th\ne screen is wide\nthree\n"+strings.Repeat("x", 16)+"...\nend\n")
	s.Draw()
	assert.Equal(t, g.String(), "a line of the log th\nat is longer than th\ne screen is wide\n")
}

// A block that is higher than the screen would scroll it, and could not be erased.
func TestScreenFitsTheHeight(t *testing.T) {
	g := &glass{t: t, width: 20}
	s := &Screen{W: g, Size: func() (int, int) { return 20, 3 }}
	for range 3 {
		s.Draw(Row{Text: "a"}, Row{Text: "b"}, Row{Text: "c"}, Row{Text: "d"})
	}
	assert.Equal(t, g.String(), "a\nb\n")
	s.Size = func() (int, int) { return 1, 1 }
	s.Draw(Row{Text: "a"})
	assert.Equal(t, g.String(), "")
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
	assert.Equal(t, b.String(), "\r\x1b[4A\x1b[Jy\n")
}

func TestColourOnlyWhereWanted(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{W: &b, Size: func() (int, int) { return 40, 10 }}
	s.Draw(Row{"x", StyleTitle})
	assert.Equal(t, b.String(), "x\n")
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
	assert.Equal(t, g.String(), strings.Repeat("line\n", 400)+"block\nblock\n", "bytes")
}

func TestNoScreen(t *testing.T) {
	assert.True(t, NewScreen(&bytes.Buffer{}) == nil, "a buffer is no terminal")
	file := must.Get(os.Create(t.TempDir() + "/file"))(t)
	defer file.Close()
	assert.True(t, NewScreen(file) == nil, "a file is no terminal")
}

// On a screen the block is drawn at once and again, and gone at the end.
func TestProgressOnAScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{t: t, width: 80}
		s := &Screen{W: g, Size: func() (int, int) { return 80, 24 }}
		stop := Watch(Progress{
			Rows: func(int) []Row { return []Row{{Text: "pages     1,234"}} },
		}, s)
		assert.Contains(t, g.String(), "pages     1,234", "not drawn at once")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, strings.Count(g.String(), "pages"), 1, "blocks after 5 s")
		stop()
		assert.Equal(t, g.String(), "", "left at the end")
	})
}
