package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// row is one line of a block on the screen.
type row struct {
	text  string // printable, without line ends
	style style
}

// style is how a row stands out where colour is wanted.
type style string

// The styles, as parameters of the terminal's SGR sequence.
const (
	styleNone   style = ""
	styleTitle  style = "1"  // bold
	styleDanger style = "31" // red
)

// screen is a terminal with a block of rows that is redrawn in place, below all other text that is written to it. It may be used
// by several goroutines.
type screen struct {
	w      io.Writer
	size   func() (width, height int)
	colour bool

	mu    sync.Mutex
	block []row
	drawn []int // length of each row on the screen
}

// newScreen returns the terminal that w is, or nil where it is none or one that cannot move its cursor.
func newScreen(w io.Writer) *screen {
	if p, plain := w.(*plainWriter); plain {
		w = p.w // the screen writes plain text by itself, and what moves the cursor
	}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return nil
	}
	return &screen{
		w:      file,
		colour: os.Getenv("NO_COLOR") == "", // no-color.org
		size: func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		},
	}
}

// Write writes whole lines above the block.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(text), s.redraw(string(text))
}

// Draw replaces the block. Without rows there is none.
func (s *screen) Draw(rows ...row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block = rows
	_ = s.redraw("") // a terminal that is gone ends the program by SIGHUP
}

// redraw erases the block, writes text, and draws the block again, all in one write, so that nothing flickers.
func (s *screen) redraw(text string) error {
	width, height := s.size()
	var b strings.Builder
	if up := s.height(width); up > 0 {
		b.WriteString("\r\x1b[" + grouped(up) + "A\x1b[J")
	}
	b.WriteString(plainText(text))
	s.drawn = s.drawn[:0]
	for _, r := range s.block[:min(len(s.block), max(height-1, 0))] {
		fitted := fit(printable(r.text), width-1)
		s.drawn = append(s.drawn, utf8.RuneCountInString(fitted))
		if s.colour && r.style != styleNone {
			fitted = "\x1b[" + string(r.style) + "m" + fitted + "\x1b[0m"
		}
		b.WriteString(fitted + "\n")
	}
	_, err := io.WriteString(s.w, b.String())
	return err
}

// height is how many lines the drawn block takes on a screen that may have become narrower since.
func (s *screen) height(width int) int {
	lines := 0
	for _, length := range s.drawn {
		lines += 1 + max(length-1, 0)/max(width, 1)
	}
	return lines
}

// fit cuts a text to a width.
func fit(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	if width < 8 {
		return string(runes[:max(width, 0)])
	}
	return string(runes[:width-3]) + "..."
}
