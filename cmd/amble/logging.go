package main

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"time"

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
