package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestLinks: every relative link in the documentation leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	pages, links := 0, 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		pages++
		text, err := os.ReadFile(path)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			assert.Equal(t, broken(target, m[2]), "", path)
		}
		return err
	})
	assert.True(t, err == nil && pages >= 20 && links >= 100, "%d pages with %d links, %v", pages, links, err)
}

// broken says what is wrong with a link to a heading of a file; empty: nothing.
func broken(file, heading string) string {
	text, err := os.ReadFile(file)
	switch {
	case heading == "" && err != nil:
		if _, err = os.Stat(file); err != nil { // a directory is fine
			return fmt.Sprintf("there is no %s", file)
		}
	case heading != "" && !headings(string(text))[heading]:
		return fmt.Sprintf("%s has no heading #%s", file, heading)
	}
	return ""
}

// headings returns the anchors of a page, as GitHub makes them of its headings.
func headings(page string) map[string]bool {
	anchors, inCode := make(map[string]bool), false
	other := regexp.MustCompile(`[^\pL\pN\-_ ]`)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if title := strings.TrimLeft(line, "#"); title != line && !inCode {
			title = other.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return anchors
}
