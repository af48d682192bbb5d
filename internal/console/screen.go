package console

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	drawEvery = 500 * time.Millisecond // the engine's snapshot is a second old at most
	LogEvery  = 10 * time.Second
)

// Progress shows how far something has come: as a line of the log, or as a block for a screen.
type Progress struct {
	Log  func()
	Rows func(width int) []Row
}

// Watch shows the progress until stop is called: on the screen, or in the log at intervals.
func Watch(p Progress, s *Screen) (stop func()) {
	every, show := LogEvery, p.Log
	if s != nil {
		every, show = drawEvery, func() {
			width, _ := s.Size()
			s.Draw(p.Rows(width)...)
		}
		show()
	}
	ctx, cancel := context.WithCancel(context.Background())
	var showing sync.WaitGroup
	showing.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				show()
			}
		}
	})
	return func() {
		cancel()
		showing.Wait()
		if s != nil {
			s.Draw()
		}
	}
}

const (
	LabelWidth = 12
	cellWidth  = 38 // of the left one of two columns
)

// Columns lays cells out in two columns if there is room, otherwise in one.
func Columns(cells [][2]string, width int) []Row {
	var rows []Row
	for i, cell := range cells {
		text := "  " + Pad(cell[0], LabelWidth) + cell[1]
		if i%2 == 1 && width >= 2*cellWidth {
			rows[len(rows)-1].Text = Pad(rows[len(rows)-1].Text, cellWidth) + text
			continue
		}
		rows = append(rows, Row{Text: text})
	}
	return rows
}

func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-len(text), 1))
}

func Rounded(f float64) float64 { return float64(int(f*10+0.5)) / 10 }

// Row is one line of a block on the screen.
type Row struct {
	Text  string // printable, without line ends
	Style style
}

// style is how a row stands out on a terminal with colour.
type style string

// The styles, as parameters of the terminal's SGR sequence.
const (
	styleNone   style = ""
	StyleTitle  style = "1"  // bold
	StyleDanger style = "31" // red
)

// Screen is a terminal with a block of rows that is redrawn in place, below all other text that is
// written to it. It may be used by several goroutines.
type Screen struct {
	W      io.Writer
	Size   func() (width, height int)
	colour bool

	mu    sync.Mutex
	block []Row
	drawn []int // length of each row on the screen
}

// NewScreen returns the terminal that w is, or nil if w is not a terminal that can move its cursor.
func NewScreen(w io.Writer) *Screen {
	if p, plain := w.(*PlainWriter); plain {
		w = p.W // the screen escapes text by itself
	}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return nil
	}
	return &Screen{
		W:      file,
		colour: os.Getenv("NO_COLOR") == "", // no-color.org
		Size: func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		},
	}
}

// Write writes whole lines above the block.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(text), s.redraw(string(text))
}

// Draw replaces the block. Without rows the block is removed.
func (s *Screen) Draw(rows ...Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block = rows
	_ = s.redraw("") // a terminal that is gone ends the program by SIGHUP
}

// redraw erases the block, writes text, and draws the block again, all in one write, so that
// nothing flickers.
func (s *Screen) redraw(text string) error {
	width, height := s.Size()
	var b strings.Builder
	if up := s.height(width); up > 0 {
		b.WriteString("\r\x1b[" + Grouped(up) + "A\x1b[J")
	}
	b.WriteString(plainText(text))
	s.drawn = s.drawn[:0]
	for _, r := range s.block[:min(len(s.block), max(height-1, 0))] {
		fitted := fit(Printable(r.Text), width-1)
		s.drawn = append(s.drawn, utf8.RuneCountInString(fitted))
		if s.colour && r.Style != styleNone {
			fitted = "\x1b[" + string(r.Style) + "m" + fitted + "\x1b[0m"
		}
		b.WriteString(fitted + "\n")
	}
	_, err := io.WriteString(s.W, b.String())
	return err
}

// height is how many lines the drawn block takes. The screen may have become narrower since.
func (s *Screen) height(width int) int {
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
