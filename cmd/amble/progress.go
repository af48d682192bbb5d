package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/amble-crawler/amble/internal/crawl"
)

const (
	drawEvery = 500 * time.Millisecond // the engine's snapshot is a second old at most
	logEvery  = 10 * time.Second
)

// progress shows how far something has come: as a line of the log, or as a block for a screen.
type progress struct {
	log  func()
	rows func(now time.Time, width int) []row
}

// crawlProgress shows the state of a crawl.
func crawlProgress(status func() crawl.Status, log *slog.Logger) progress {
	return progress{
		log:  func() { logProgress(log, status()) },
		rows: func(now time.Time, width int) []row { return progressRows(status(), now, width) },
	}
}

// watch shows the progress until stop is called: on the screen, or in the log at intervals.
func watch(p progress, s *screen) (stop func()) {
	every, show := logEvery, p.log
	if s != nil {
		every, show = drawEvery, func() {
			width, _ := s.size()
			s.Draw(p.rows(time.Now(), width)...)
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

// logProgress logs the block as one line.
func logProgress(log *slog.Logger, s crawl.Status) {
	active, waiting := hostsAt(s)
	attributes := []any{
		"pages", s.Run.Pages, "pages_per_second", rounded(s.PagesPerSec), "bytes", s.Run.Bytes,
		"hosts_active", active, "hosts_waiting", waiting, "queued", queued(s), "denied", s.URLs["denied"], "errors",
		total(errorKinds(s)),
	}
	if len(s.Slowest) > 0 {
		attributes = append(attributes, "finish", span(fromSeconds(s.Finish)), "slowest_host", s.Slowest[0].Host)
	}
	if s.State == "stalled" {
		log.Warn(stalledText, append(attributes, "reason", s.Reason)...)
		return
	}
	if s.Reason != "" {
		attributes = append(attributes, "reason", s.Reason)
	}
	log.Info(s.State, attributes...)
}

const stalledText = "nothing is fetched until the disk has room again"

// progressRows returns the block for a screen of a width.
func progressRows(s crawl.Status, now time.Time, width int) []row {
	active, waiting := hostsAt(s)
	cells := [][2]string{
		{"pages", fmt.Sprintf("%s  %.1f/s", grouped(s.Run.Pages), s.PagesPerSec)},
		{"hosts", fmt.Sprintf("%s active, %s waiting", grouped(active), grouped(waiting))},
		{"received", fmt.Sprintf("%s  %s/s", size(s.Run.Bytes), size(s.BytesPerSec))},
		{"queue", plural(queued(s), "URL")},
		{"denied", grouped(s.URLs["denied"]) + " by robots.txt"},
		{"errors", grouped(total(errorKinds(s)))},
	}
	rows := []row{{title(s, now), styleTitle}}
	if s.State == "stalled" {
		rows = append(rows, row{"  " + stalledText + ": " + s.Reason, styleDanger})
	}
	if s.State == "running" && s.Reason != "" {
		rows = append(rows, row{text: "  " + s.Reason})
	}
	rows = append(rows, columns(cells, width)...)
	if text := finishText(s); text != "" {
		rows = append(rows, row{text: "  " + pad("left", labelWidth) + text})
	}
	return rows
}

func title(s crawl.Status, now time.Time) string {
	switch {
	case s.Started.IsZero():
		return "amble: reading the database"
	case s.State == "stopping":
		return "amble: stopping, " + plural(s.InFlight, "request") + " in flight; Ctrl-C again to stop at once"
	default:
		return "amble: " + s.State + " for " + span(now.Sub(stateSince(s))) + "; Ctrl-C to stop"
	}
}

const (
	labelWidth = 10
	cellWidth  = 38 // of the left one of two columns
)

// columns lays cells out in two columns if there is room, otherwise in one.
func columns(cells [][2]string, width int) []row {
	var rows []row
	for i, cell := range cells {
		text := "  " + pad(cell[0], labelWidth) + cell[1]
		if i%2 == 1 && width >= 2*cellWidth {
			rows[len(rows)-1].text = pad(rows[len(rows)-1].text, cellWidth) + text
			continue
		}
		rows = append(rows, row{text: text})
	}
	return rows
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-len(text), 1))
}

// finishText says how long it will take, and which host determines that; empty if it is not known.
func finishText(s crawl.Status) string {
	if len(s.Slowest) == 0 {
		return ""
	}
	return fmt.Sprintf("about %s; %s has %s", span(fromSeconds(s.Finish)), s.Slowest[0].Host,
		plural(s.Slowest[0].URLs, "URL"))
}

// hostsAt counts the hosts that have requests in flight, and those that have work and wait.
func hostsAt(s crawl.Status) (active, waiting int) {
	for state, n := range s.HostStates {
		switch state {
		case "leased", "loading", "resolving":
			active += n
		case "waiting", "crowded", "dormant", "parked":
			waiting += n
		}
	}
	return active, waiting
}

// queued counts the URLs that will still be fetched.
func queued(s crawl.Status) int { return s.URLs["queued"] + s.URLs["retrying"] }

func fromSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func rounded(f float64) float64 { return float64(int(f*10+0.5)) / 10 }

// row is one line of a block on the screen.
type row struct {
	text  string // printable, without line ends
	style style
}

// style is how a row stands out on a terminal with colour.
type style string

// The styles, as parameters of the terminal's SGR sequence.
const (
	styleNone   style = ""
	styleTitle  style = "1"  // bold
	styleDanger style = "31" // red
)

// screen is a terminal with a block of rows that is redrawn in place, below all other text that is
// written to it. It may be used by several goroutines.
type screen struct {
	w      io.Writer
	size   func() (width, height int)
	colour bool

	mu    sync.Mutex
	block []row
	drawn []int // length of each row on the screen
}

// newScreen returns the terminal that w is, or nil if w is not a terminal that can move its cursor.
func newScreen(w io.Writer) *screen {
	if p, plain := w.(*plainWriter); plain {
		w = p.w // the screen escapes text by itself
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

// Draw replaces the block. Without rows the block is removed.
func (s *screen) Draw(rows ...row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block = rows
	_ = s.redraw("") // a terminal that is gone ends the program by SIGHUP
}

// redraw erases the block, writes text, and draws the block again, all in one write, so that
// nothing flickers.
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

// height is how many lines the drawn block takes. The screen may have become narrower since.
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
