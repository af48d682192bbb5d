package console

import (
	"bytes"
	"encoding/json"
	"log"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// What libraries print is part of the log, at level debug and in its format, and no server can make
// it grow as it likes.
func TestStandardLog(t *testing.T) {
	for level, want := range map[string]int{"debug": 11, "info": 0} {
		var out bytes.Buffer
		to, _ := NewLogger(&out, config.Log{Level: level, Format: "json"})
		now := time.Unix(1_000_000, 0)
		l := log.New(newStandardLog(to, func() time.Time { return now }), "", 0)
		for range 100_000 {
			l.Print("Transport: unhandled response frame type")
		}
		now = now.Add(time.Second)
		l.Print("one more")
		assert.Equal(t, strings.Count(out.String(), "\n"), want, level, "lines")
		assert.True(t, level != "debug" ||
			strings.Contains(out.String(), `"text":"one more","lines_left_out":99990}`), "%s", out.String())
	}
}

func TestStandardLogIsRestored(t *testing.T) {
	var out bytes.Buffer
	to, _ := NewLogger(&out, config.Log{Level: "debug", Format: "text"})
	before := log.Writer()
	restore := RedirectStandardLog(to, time.Now)
	log.Print("hello")
	restore()
	assert.True(t, strings.Contains(out.String(), "text=hello") && log.Writer() == before, "%q", out.String())
}

// hostile is text that a stranger may choose: it moves the cursor, clears the screen, turns around
// what follows, and hides.
const hostile = "a\x1b[2Jb\u202ec\u2066d\u200ee\u009bf\rg\x07h\u2028i\u200bj\ufeffk\U000e0001l\x7fm"

// isHarmless reports whether a terminal shows a text as it stands.
func isHarmless(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !isPlain(c) })
}

// TestPlainWriter: what a terminal gets does nothing but stand there, however it is cut into
// pieces; JSON stays the same value.
func TestPlainWriter(t *testing.T) {
	good := "plain, ünïcödé, 日本語\tand a line\n"
	encoded := must.Get(json.Marshal(map[string]string{"title": hostile}))(t)
	for _, text := range []string{good, hostile + "\n", string(encoded) + "\n", "\xff\xfe" + good, ""} {
		for size := 1; size < 9; size++ {
			var b bytes.Buffer
			w := &PlainWriter{W: &b}
			for at := 0; at < len(text); at += size {
				n, err := w.Write([]byte(text[at:min(at+size, len(text))]))
				must.True(t, err == nil && n == min(size, len(text)-at), "%v %v", n, err)
			}
			got := b.String()
			assert.True(t, isHarmless(got) && got == plainText(text), "in pieces of %d: %q", size, got)
		}
	}
	assert.Equal(t, plainText(good), good, "becomes")
	var back map[string]string
	err := json.Unmarshal([]byte(plainText(string(encoded))), &back)
	assert.True(t, err == nil && back["title"] == hostile, "%q, %v", back["title"], err)
	got := Printable(hostile + "\n")
	assert.True(t, isHarmless(got) && !strings.Contains(got, "\n"), "%q", got)
}

// TestScreenIsPlain: the block and the lines above it are plain, but for what moves the cursor.
func TestScreenIsPlain(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{W: &b, Size: func() (int, int) { return 80, 24 }}
	s.Draw(Row{Text: "slow host " + hostile})
	must.Get(s.Write([]byte(hostile + "\n")))(t)
	moves := strings.NewReplacer("\r\x1b[1A\x1b[J", "", "\r\x1b[2A\x1b[J", "", "\r\x1b[3A\x1b[J", "")
	got := moves.Replace(b.String())
	assert.True(t, isHarmless(got), "%q", got)
}
