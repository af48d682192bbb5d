package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/internal/config"
)

// newLogger returns the log that the settings ask for. Its level may be changed later.
func newLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(levelOf(c))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

func levelOf(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo // config.Load lets only names of levels pass
	}
	return level
}

// standardLog takes what libraries print through package log, net/http about HTTP/2 for one: servers
// decide how much that is. It goes to the log of the program at level debug, at a bounded rate.
type standardLog struct {
	log     *slog.Logger
	now     func() time.Time
	limiter *rate.Limiter
	left    int // lines left out since the last that was logged
}

func newStandardLog(to *slog.Logger, now func() time.Time) *standardLog {
	return &standardLog{log: to, now: now, limiter: rate.NewLimiter(1, standardLines)}
}

// standardLines is how many lines may come at once; in the long run it is one a second.
const standardLines = 10

// redirectStandardLog makes package log print to a logger until restore is called.
func redirectStandardLog(to *slog.Logger) (restore func()) {
	flags, out := log.Flags(), log.Writer()
	log.SetFlags(0)
	log.SetOutput(newStandardLog(to, time.Now))
	return func() {
		log.SetFlags(flags)
		log.SetOutput(out)
	}
}

// Write takes one line; package log calls it for one at a time.
func (s *standardLog) Write(line []byte) (int, error) {
	if !s.limiter.AllowN(s.now(), 1) {
		s.left++
		return len(line), nil
	}
	s.log.Debug("a library says", "text", string(bytes.TrimSpace(line)), "lines_left_out", s.left)
	s.left = 0
	return len(line), nil
}

// Texts of strangers reach the terminal in many places: URLs, titles, lines of robots.txt, errors. What could steer a terminal, or turn the order
// of its characters around, is escaped in the one place that all output passes.

// isPlain reports whether a character does nothing but stand there. Line ends and tabs are what amble itself writes.
func isPlain(c rune) bool {
	return c == '\n' || c == '\t' || !unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// isPlainByte is isPlain for what most text consists of.
func isPlainByte(b byte) bool { return b >= ' ' && b < 0x7f || b == '\n' || b == '\t' }

// plainText is a text in which all characters are plain. Others are escaped as JSON does it, so that JSON stays what it was.
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

// printable is a text as one line of plain characters.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !isPlain(c) || c == '\n' || c == '\t' {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// plainWriter writes text in which all characters are plain. It may be used by several goroutines.
type plainWriter struct {
	w io.Writer

	mu   sync.Mutex
	part []byte // the begin of a character whose end is still to come
}

// Write is part of io.Writer.
func (p *plainWriter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := append(p.part, text...)
	cut := len(whole) - partial(whole)
	p.part = append([]byte(nil), whole[cut:]...)
	if _, err := io.WriteString(p.w, plainText(string(whole[:cut]))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// partial is how many bytes at the end are the begin of a character.
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

// rawOutput is where bytes go as they are, if that is no terminal.
func rawOutput(w io.Writer) io.Writer {
	p, ok := w.(*plainWriter)
	if !ok {
		return w
	}
	if file, isFile := p.w.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		return p
	}
	return p.w
}
