package main

import (
	"bytes"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/config"
)

// What libraries print is part of the log, at level debug and in its format, and no server can make it grow as it likes.
func TestStandardLog(t *testing.T) {
	for level, want := range map[string]int{"debug": 11, "info": 0} {
		var out bytes.Buffer
		to, _ := newLogger(&out, config.Log{Level: level, Format: "json"})
		now := time.Unix(1_000_000, 0)
		l := log.New(newStandardLog(to, func() time.Time { return now }), "", 0)
		for range 100_000 {
			l.Print("Transport: unhandled response frame type")
		}
		now = now.Add(time.Second)
		l.Print("one more")
		if n := strings.Count(out.String(), "\n"); n != want {
			t.Errorf("%s: %d lines, want %d", level, n, want)
		}
		if level == "debug" && !strings.Contains(out.String(), `"text":"one more","lines_left_out":99990}`) {
			t.Errorf("%s", out.String())
		}
	}
}

func TestStandardLogIsRestored(t *testing.T) {
	var out bytes.Buffer
	to, _ := newLogger(&out, config.Log{Level: "debug", Format: "text"})
	before := log.Writer()
	restore := redirectStandardLog(to)
	log.Print("hello")
	restore()
	if !strings.Contains(out.String(), "text=hello") || log.Writer() != before {
		t.Errorf("%q", out.String())
	}
}
