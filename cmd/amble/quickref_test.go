//go:build !core

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestQuickReference: docs/QUICKREF.md has every command and exit code of the program, and as settings those that
// config.yaml marks.
func TestQuickReference(t *testing.T) {
	page := read(t, "../../docs/QUICKREF.md")
	for _, c := range newRootCommand().Commands() {
		assert.True(t, strings.Contains(page, "`amble "+c.Name()), "no command %s", c.Name())
	}
	for _, m := range regexp.MustCompile(`(?m)^ +(\d+)  `).FindAllStringSubmatch(exitCodes, -1) {
		assert.True(t, strings.Contains(page, "\n| "+m[1]+" | "), "no exit code %s", m[1])
	}
	var marked []string
	section := ""
	for line := range strings.Lines(read(t, "../../config.yaml")) {
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if line[0] != ' ' && line[0] != '#' {
			section = key + "."
		}
		if strings.Contains(line, "# (*) ") {
			marked = append(marked, strings.TrimPrefix(section+key, key+"."))
		}
	}
	_, settings, _ := strings.Cut(page, "## Settings")
	settings, _, _ = strings.Cut(settings, "## ")
	var shown []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(settings, -1) {
		shown = append(shown, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")...)
	}
	assert.True(t, len(marked) >= 12 && slices.Equal(marked, shown), "config.yaml marks %q,\nthe page shows %q",
		marked, shown)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return string(text)
}
