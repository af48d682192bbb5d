package main

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"time"

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
	log   *slog.Logger
	now   func() time.Time
	since time.Time // begin of the window
	lines int       // that came in it
}

// Of the lines that come within a window the first few are logged.
const (
	standardWindow = 10 * time.Second
	standardLines  = 10
)

// redirectStandardLog makes package log print to a logger until restore is called.
func redirectStandardLog(to *slog.Logger) (restore func()) {
	flags, out := log.Flags(), log.Writer()
	log.SetFlags(0)
	log.SetOutput(&standardLog{log: to, now: time.Now})
	return func() {
		log.SetFlags(flags)
		log.SetOutput(out)
	}
}

// Write takes one line; package log calls it for one at a time.
func (s *standardLog) Write(line []byte) (int, error) {
	if now := s.now(); now.Sub(s.since) >= standardWindow {
		if left := s.lines - standardLines; left > 0 {
			s.log.Debug("libraries said more", "lines_left_out", left)
		}
		s.since, s.lines = now, 0
	}
	if s.lines++; s.lines <= standardLines {
		s.log.Debug("a library says", "text", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}
