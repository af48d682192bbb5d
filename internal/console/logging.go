package console

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/internal/config"
)

// NewLogger returns the log of the settings. Its level may be changed later.
func NewLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(LevelOf(c))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

func LevelOf(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo // config.Load accepts only names of levels
	}
	return level
}

// standardLog receives what libraries print through package log, such as net/http about HTTP/2.
// Servers decide how much that is, so it is logged at level debug and at a bounded rate.
type standardLog struct {
	log     *slog.Logger
	now     func() time.Time
	limiter *rate.Limiter
	left    int // lines left out since the last logged one
}

func newStandardLog(to *slog.Logger, now func() time.Time) *standardLog {
	return &standardLog{log: to, now: now, limiter: rate.NewLimiter(1, standardLines)}
}

// standardLines is the burst of lines; the sustained rate is one a second.
const standardLines = 10

// RedirectStandardLog makes package log print to a logger until restore is called. now is the clock of the rate bound.
func RedirectStandardLog(to *slog.Logger, now func() time.Time) (restore func()) {
	flags, out := log.Flags(), log.Writer()
	log.SetFlags(0)
	log.SetOutput(newStandardLog(to, now))
	return func() {
		log.SetFlags(flags)
		log.SetOutput(out)
	}
}

// Write takes one line. Package log serialises the calls.
func (s *standardLog) Write(line []byte) (int, error) {
	if !s.limiter.AllowN(s.now(), 1) {
		s.left++
		return len(line), nil
	}
	s.log.Debug("message of a library", "text", string(bytes.TrimSpace(line)), "lines_left_out", s.left)
	s.left = 0
	return len(line), nil
}

// Foreign text reaches the terminal in many places: URLs, titles, lines of robots.txt, errors. All
// output passes through plainWriter, which escapes the characters that control a terminal or
// reverse the direction of text.

// isPlain reports whether a character is printable and has no effect on others. Line ends and tabs
// come from amble itself.
func isPlain(c rune) bool {
	return c == '\n' || c == '\t' || !unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// isPlainByte is isPlain for ASCII.
func isPlainByte(b byte) bool { return b >= ' ' && b < 0x7f || b == '\n' || b == '\t' }

// plainText escapes all characters that are not plain. It escapes them as JSON does, so that JSON
// stays the same.
func plainText(text string) string {
	for i := range len(text) {
		if !isPlainByte(text[i]) {
			return escaped(text)
		}
	}
	return text
}

func escaped(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case isPlain(c):
			b.WriteRune(c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// Printable returns text as one line of plain characters.
func Printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !isPlain(c) || c == '\n' || c == '\t' {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// PlainWriter writes text with all characters plain. It may be used by several goroutines.
type PlainWriter struct {
	W io.Writer

	mu   sync.Mutex
	part []byte // the beginning of a character whose end is still to come
}

// Write implements io.Writer.
func (p *PlainWriter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := append(p.part, text...)
	cut := len(whole) - partial(whole)
	p.part = append([]byte(nil), whole[cut:]...)
	if _, err := io.WriteString(p.W, plainText(string(whole[:cut]))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// partial returns how many bytes at the end are the beginning of a character.
func partial(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n:]; utf8.RuneStart(b[0]) {
			if utf8.FullRune(b) {
				return 0
			}
			return n
		}
	}
	return 0
}
