package config

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// record writes what Load says into the testdata files, for a person to read and judge.
var record = flag.Bool("record", false, "rewrite the expected messages of testdata/*.bad.yaml")

const wantPrefix = "# want: "

// TestBadFiles loads each testdata/*.bad.yaml and compares every message with the "# want:" lines at its end.
func TestBadFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 30 {
		t.Fatalf("%d bad files, want at least 30", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := Load(path, nil, nil)
			var problems Errors
			if !errors.As(err, &problems) || c != nil {
				t.Fatalf("Load = %v, %v; want no Config and Errors", c, err)
			}
			got := strings.ReplaceAll(problems.Error(), filepath.Dir(path)+"/", "")
			if *record {
				recordWants(t, path, got)
				return
			}
			if want := wants(t, path); got != want {
				t.Errorf("messages differ\n got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestGoodFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.good.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, err := Load(path, nil, nil); err != nil {
				t.Errorf("Load: %v", err)
			}
		})
	}
}

func wants(t *testing.T, path string) string {
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(bytes.NewReader(body)); scanner.Scan(); {
		if want, ok := strings.CutPrefix(scanner.Text(), wantPrefix); ok {
			lines = append(lines, want)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s says nowhere what is expected; want lines that begin with %q", path, wantPrefix)
	}
	return strings.Join(lines, "\n")
}

func recordWants(t *testing.T, path, got string) {
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, wantPrefix) {
			kept = append(kept, line)
		}
	}
	text := strings.Join(kept, "")
	for line := range strings.SplitSeq(got, "\n") {
		text += wantPrefix + line + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
