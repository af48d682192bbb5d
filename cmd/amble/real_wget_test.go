//go:build real

package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const crawlTimeout = 4 * time.Minute // of one crawl by anybody

// wget fetches the sites recursively, with robots.txt obeyed, and returns how long that took.
func wget(t *testing.T, server *nginx, more ...string) time.Duration {
	t.Helper()
	arguments := []string{
		"--recursive", "--level=inf", "--no-parent", "--execute", "robots=on",
		"--no-verbose", "--no-config", "--no-proxy", "--tries=1", "--timeout=20", "--directory-prefix", t.TempDir(),
	}
	begun := time.Now()
	output, err := command(t, crawlTimeout, "wget", slices.Concat(arguments, more, server.seeds)...)
	took := time.Since(begun)
	const serverError = "exit status 8" // an answer such as 404; the log has it
	if err != nil && !strings.HasSuffix(err.Error(), serverError) {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	return took
}

// tail is the end of a long text.
func tail(text string) string {
	const enough = 3000
	if len(text) > enough {
		return "..." + text[len(text)-enough:]
	}
	return text
}
