package main

import (
	"io"
	"log/slog"

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
