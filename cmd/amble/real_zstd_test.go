//go:build real

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// pythonFastWARC reads .warc.zst files; warcio does not.
const pythonFastWARC = "fastwarc==2.0.1"

// TestRealZstd stores real documentation in .warc.zst files, without a dictionary and with one that
// is trained as docs/ARCHIVE.md says, and lets programs of others read them: FastWARC as they are,
// and warcio what the zstd program makes of them.
func TestRealZstd(t *testing.T) {
	forgetSettings(t)
	sites := install(t)
	binary := build(t)
	if output, err := command(t, time.Minute, "zstd", "--version"); err != nil {
		t.Skipf("the zstd program is not installed: %v\n%s", err, output)
	}
	plain := storeZstd(t, sites, binary, "")
	dictionary := filepath.Join(t.TempDir(), "dictionary")
	const train = `cd "$1" && zstd -dc amble-*.warc.zst | head -c 100000000 >"$0.warc" &&
		zstd --train -B4KiB "$0.warc" --maxdict=32KiB -o "$0"`
	if output, err := command(t, 5*time.Minute, "sh", "-c", train, dictionary, filepath.Dir(plain[0])); err != nil {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	small := storeZstd(t, sites, binary, dictionary)
	before, after := sizeOf(t, plain...), sizeOf(t, small...)
	t.Logf("%d bytes without a dictionary, %d with one", before, after)
	assert.True(t, after < before, "the dictionary saves nothing")
	bin := python(t, pythonWarcio, pythonFastWARC)
	for name, files := range map[string][]string{"": plain, dictionary: small} {
		unpacked := unpackZstd(t, files, name)
		output, err := command(t, 5*time.Minute, filepath.Join(bin, "warcio"),
			append([]string{"check", "-v"}, unpacked...)...)
		if err != nil || strings.Contains(output, "failed") || !strings.Contains(output, "digest pass") {
			t.Errorf("warcio check: %v\n%s", err, tail(output))
		}
		t.Logf("warcio check: %d records pass", strings.Count(output, "digest pass"))
		records := 0
		for _, file := range files {
			// Without --verify-payloads: with it, FastWARC 2.0.1 reports two payloads of some
			// 1,700, and warcio and amble archive verify report none.
			output, err := command(t, 5*time.Minute, filepath.Join(bin, "fastwarc"), "check", "--quiet", "--output",
				file+".txt", file)
			if err != nil {
				t.Errorf("fastwarc check: %v\n%s", err, tail(output))
			}
			text := must.Get(os.ReadFile(file + ".txt"))(t)
			records += strings.Count(string(text), "\n")
		}
		passed := strings.Count(output, "digest pass")
		assert.True(t, records >= passed, "FastWARC reads %d records, warcio %d", records, passed)
	}
}

// storeZstd crawls into .warc.zst files, verifies them and returns their names.
func storeZstd(t *testing.T, sites []site, binary, dictionary string) []string {
	t.Helper()
	server := serve(t, sites, 0)
	c := newCrawl(t, binary, server, fast, 0)
	c.finish(t, c.startWith(t, "output.format=warc", "output.warc_compress=zstd", "output.zstd_dictionary="+dictionary))
	server.stop(t)
	files, err := filepath.Glob(filepath.Join(c.dir, "data", "output", "*.warc.zst"))
	must.True(t, err == nil && len(files) != 0, "WARC files %q: %v", files, err)
	if output, err := command(t, time.Minute, c.binary, "archive", "verify", "-c",
		filepath.Join(c.dir, "config.yaml")); err != nil {
		t.Errorf("amble archive verify: %v\n%s", err, output)
	}
	return files
}

// unpackZstd unpacks files with the zstd program.
func unpackZstd(t *testing.T, files []string, dictionary string) (unpacked []string) {
	t.Helper()
	for _, file := range files {
		target := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(file), ".zst"))
		arguments := []string{"-d", file, "-o", target}
		if dictionary != "" {
			arguments = append(arguments, "-D", dictionary)
		}
		if output, err := command(t, time.Minute, "zstd", arguments...); err != nil {
			t.Fatalf("%v\n%s", err, tail(output))
		}
		unpacked = append(unpacked, target)
	}
	return unpacked
}
