//go:build real

package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// pythonWACZ validates WACZ files. Its validation imports pkg_resources, which later setuptools have no more.
const pythonWACZ = "wacz==0.5.0"

// TestRealWACZ packs real documentation, from WARC files with gzip and with zstd. py-wacz validates the package, warcio
// and cdxj-indexer read the WARC files in it, and wabac.js opens it.
func TestRealWACZ(t *testing.T) {
	forgetSettings(t)
	sites := install(t)
	binary := build(t)
	bin := python(t, pythonWACZ, pythonWarcio, "setuptools<80")
	for _, compression := range []string{"gzip", "zstd"} {
		server := serve(t, sites, 0)
		c := newCrawl(t, binary, server, fast, 0)
		c.finish(t, c.startWith(t, "output.format=warc", "output.max_file=4MiB", "output.warc_compress="+compression,
			"output.wacz=true"))
		fetched := pagesOf(server.stop(t))
		path := filepath.Join(c.dir, "data", "output", "amble.wacz")
		output, err := command(t, 5*time.Minute, filepath.Join(bin, "wacz"), "validate", "-f", path)
		if err != nil || !strings.Contains(output, "Version detected as 1.1.1") ||
			!strings.Contains(output, "the passed WACZ is valid") {
			t.Errorf("%s: wacz validate: %v\n%s", compression, err, tail(output))
		}
		dir := t.TempDir()
		if output, err := command(t, time.Minute, "python3", "-m", "zipfile", "-e", path, dir); err != nil {
			t.Fatalf("%v\n%s", err, tail(output))
		}
		files, err := filepath.Glob(filepath.Join(dir, "archive", "*.warc.gz"))
		must.True(t, err == nil && len(files) >= 2, "WARC files %q: %v", files, err)
		output, err = command(t, 5*time.Minute, filepath.Join(bin, "warcio"),
			append([]string{"check", "-v"}, files...)...)
		if err != nil || strings.Contains(output, "failed") {
			t.Errorf("%s: warcio check: %v\n%s", compression, err, tail(output))
		}
		output, err = command(t, 5*time.Minute, filepath.Join(bin, "cdxj-indexer"),
			append([]string{"--sort"}, files...)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, tail(output))
		}
		theirs := parseIndex(t, output)
		index := filepath.Join(dir, "indexes", "index.cdx.gz")
		lines, err := command(t, time.Minute, "gzip", "-dc", index)
		if err != nil {
			t.Fatalf("%v\n%s", err, tail(lines))
		}
		ours := parseIndex(t, lines)
		sameEntries(t, "cdxj-indexer", theirs, ours)
		t.Run("wabac.js "+compression, func(t *testing.T) { readWithWabac(t, c, path, ours) })
		assert.True(t, len(theirs) >= len(fetched), "%s: %d lines for %d pages", compression, len(theirs),
			len(fetched))
	}
}

// readWithWabac lets wabac.js open a package, and compares pages that it finds there with what amble says is stored.
func readWithWabac(t *testing.T, c *crawl, path string, ours []warc.Entry) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "wabac"))))
	if output, err := command(t, 8*time.Minute, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund",
		"--silent"); err != nil {
		t.Skipf("wabac.js cannot be had: %v\n%s", err, tail(output))
	}
	arguments, want := []string{filepath.Join(dir, "read.mjs"), path}, []string(nil)
	for i, e := range ours {
		if e.Status != 200 || i%37 != 0 || !strings.Contains(e.URL, "//127.0.0.2") { // the other site is compressed
			continue
		}
		text, err := command(t, time.Minute, c.binary, "archive", "get", e.URL, "-c",
			filepath.Join(c.dir, "config.yaml"))
		if err != nil {
			t.Fatalf("%v\n%s", err, tail(text))
		}
		digest := sha256.Sum256([]byte(text))
		arguments = append(arguments, e.Time.Format("20060102150405"), e.URL)
		want = append(want, hex.EncodeToString(digest[:]))
	}
	script := `exec node "$@" 2>"$0"`
	log := filepath.Join(dir, "log")
	output, err := command(t, 5*time.Minute, "sh", append([]string{"-c", script, log}, arguments...)...)
	var got struct {
		Pages int
		Read  []struct {
			Status int
			Digest string
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(output), &got)
	}
	if err != nil || got.Pages == 0 || len(got.Read) != len(want) || len(want) < 5 {
		text, _ := os.ReadFile(log)
		t.Fatalf("%v: %d pages, %d of %d captures\n%s\n%s", err, got.Pages, len(got.Read), len(want), tail(output),
			tail(string(text)))
	}
	for i, r := range got.Read {
		if r.Status != 200 || r.Digest != want[i] {
			t.Errorf("wabac.js reads %q with status %d and another content", arguments[3+2*i], r.Status)
		}
	}
	t.Logf("wabac.js: %d seeds; %d captures are as amble says", got.Pages, len(want))
}
