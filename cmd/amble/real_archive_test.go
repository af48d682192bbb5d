//go:build real

package main_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// The versions of the readers that nobody here wrote.
const (
	pythonWarcio  = "warcio==1.8.1"
	pythonIndexer = "cdxj-indexer==1.5.0"
	pythonReplay  = "pywb"
	nodeWarcio    = "warcio@2.4.11"
	javaWARC      = "org.netpreserve:jwarc:0.32.0"
)

// TestRealArchive stores real documentation in WARC files and lets programs of others read them:
// warcio and cdxj-indexer of the Python Package Index, warcio of npm, jwarc of Maven, and pywb, which serves the
// pages again. What they come from decides where a reader can be had; where one cannot, its part of
// the test is skipped and says so.
func TestRealArchive(t *testing.T) {
	forgetSettings(t)
	sites := install(t)
	server := serve(t, sites, 0)
	c := newCrawl(t, build(t), server, fast, 0)
	p := c.startWith(t, "output.format=warc,jsonl", "output.max_file=4MiB", "output.prefix=real")
	c.finish(t, p)
	fetched := pagesOf(server.stop(t))
	files, err := filepath.Glob(filepath.Join(c.dir, "data", "output", "real-*.warc.gz"))
	must.True(t, err == nil && len(files) >= 2, "WARC files %q: %v", files, err)
	if output, err := command(t, time.Minute, c.binary, "archive", "verify", "-c",
		filepath.Join(c.dir, "config.yaml")); err != nil {
		t.Errorf("amble archive verify: %v\n%s", err, output)
	}
	ours := c.index(t)
	if got := len(ours); got != len(fetched)+len(sites) {
		t.Errorf("the index has %d lines for %d pages and %d robots.txt", got, len(fetched), len(sites))
	}
	compareSizes(t, sites, files, len(fetched))
	t.Run("Python", func(t *testing.T) { readWithPython(t, files, ours) })
	t.Run("Node", func(t *testing.T) { readWithNode(t, files, ours) })
	t.Run("Java", func(t *testing.T) { readWithJava(t, files, ours) })
	t.Run("Replay", func(t *testing.T) { replay(t, c, files, ours) })
}

// startWith starts the crawl with settings of its own.
func (c *crawl) startWith(t *testing.T, settings ...string) *process {
	t.Helper()
	arguments := []string{"run", "-c", filepath.Join(c.dir, "config.yaml")}
	for _, s := range settings {
		arguments = append(arguments, "--set", s)
	}
	return start(t, c.binary, arguments...)
}

// index reads the CDXJ files, which have to be sorted.
func (c *crawl) index(t *testing.T) (entries []warc.Entry) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(c.dir, "data", "output", "*.cdxj"))
	must.True(t, err == nil && len(names) != 0, "no index (%v)", err)
	for _, name := range names {
		text := must.Get(os.ReadFile(name))(t)
		lines := slices.Collect(strings.Lines(string(text)))
		assert.True(t, slices.IsSorted(lines), "%s is not sorted", name)
		entries = append(entries, parseIndex(t, string(text))...)
	}
	return entries
}

func parseIndex(t *testing.T, text string) (entries []warc.Entry) {
	t.Helper()
	for line := range strings.Lines(text) {
		e := must.Get(warc.ParseEntry([]byte(line)))(t)
		entries = append(entries, e)
	}
	return entries
}

// sameEntries compares indexes in any order.
func sameEntries(t *testing.T, who string, theirs, ours []warc.Entry) {
	t.Helper()
	key := func(e warc.Entry) string { return fmt.Sprintf("%s %012d", e.Filename, e.Offset) }
	byOffset := make(map[string]warc.Entry)
	for _, e := range ours {
		byOffset[key(e)] = e
	}
	for _, e := range theirs {
		mine, found := byOffset[key(e)]
		assert.True(t, found && mine == e, "%s says %+v, our index %+v", who, e, mine)
		delete(byOffset, key(e))
	}
	if len(byOffset) > 0 {
		t.Errorf("%s does not have %d of our lines, such as %q", who, len(byOffset),
			slices.Sorted(maps.Keys(byOffset))[0])
	}
	t.Logf("%s: %d lines, the same as ours", who, len(theirs))
}

// compareSizes tells what a page takes in our files and in those of wget.
func compareSizes(t *testing.T, sites []site, files []string, pages int) {
	t.Helper()
	server := serve(t, sites, 0)
	prefix := filepath.Join(t.TempDir(), "wget")
	wget(t, server, "--warc-file="+prefix, "--no-warc-keep-log", "--delete-after", "--compression=auto")
	requests := len(server.stop(t))
	perPage := float64(sizeOf(t, files...)) / float64(pages)
	ofWget := float64(sizeOf(t, prefix+".warc.gz")) / float64(requests)
	t.Logf("amble: %.0f bytes a page, metadata records included; wget --warc-file: %.0f bytes a request (pages, "+
		"scripts and images)", perPage, ofWget)
}

func sizeOf(t *testing.T, files ...string) (n int64) {
	t.Helper()
	for _, f := range files {
		info := must.Get(os.Stat(f))(t)
		n += info.Size()
	}
	return n
}

// python makes an environment with packages; the test is skipped where they cannot be had.
func python(t *testing.T, packages ...string) (bin string) {
	t.Helper()
	dir := t.TempDir()
	if output, err := command(t, 8*time.Minute, "python3", "-m", "venv", dir); err != nil {
		t.Skipf("no environment of Python: %v\n%s", err, tail(output))
	}
	bin = filepath.Join(dir, "bin")
	if output, err := command(t, 8*time.Minute, filepath.Join(bin, "pip"),
		append([]string{"install", "--quiet"}, packages...)...); err != nil {
		t.Skipf("the Python packages %q cannot be had: %v\n%s", packages, err, tail(output))
	}
	return bin
}

func readWithPython(t *testing.T, files []string, ours []warc.Entry) {
	bin := python(t, pythonWarcio, pythonIndexer)
	output, err := command(t, 5*time.Minute, filepath.Join(bin, "warcio"), append([]string{"check", "-v"}, files...)...)
	if err != nil || strings.Contains(output, "failed") {
		t.Errorf("warcio check: %v\n%s", err, tail(output))
	}
	passed := strings.Count(output, "digest pass")
	if passed < 2*len(ours) { // a response, a request and a metadata record each, except for revisit records
		t.Errorf("warcio checked %d records for %d lines of the index", passed, len(ours))
	}
	t.Logf("warcio check: %d records pass", passed)
	output, err = command(t, 5*time.Minute, filepath.Join(bin, "cdxj-indexer"), append([]string{"--sort"}, files...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	sameEntries(t, "cdxj-indexer", parseIndex(t, output), ours)
}

func readWithNode(t *testing.T, files []string, ours []warc.Entry) {
	dir := t.TempDir()
	if output, err := command(t, 5*time.Minute, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund",
		"--silent", nodeWarcio); err != nil {
		t.Skipf("the npm package %s cannot be had: %v\n%s", nodeWarcio, err, tail(output))
	}
	index := filepath.Join(dir, "index.cdxj")
	script := `"$0" cdx-index "$@" > ` + index
	output, err := command(t, 5*time.Minute, "sh",
		append([]string{"-c", script, filepath.Join(dir, "node_modules", ".bin", "warcio")}, files...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	text := must.Get(os.ReadFile(index))(t)
	sameEntries(t, "npm warcio", asOurs(parseIndex(t, string(text))), ours)
}

// readWithJava lets jwarc validate the files, and compares what it lists.
func readWithJava(t *testing.T, files []string, ours []warc.Entry) {
	dir := t.TempDir()
	if output, err := command(t, 10*time.Minute, "mvn", "-q", "-B", "dependency:copy", "-Dartifact="+javaWARC,
		"-DoutputDirectory="+dir); err != nil {
		t.Skipf("%s cannot be had: %v\n%s", javaWARC, err, tail(output))
	}
	jars := must.Get(filepath.Glob(filepath.Join(dir, "*.jar")))(t)
	jwarc := func(name string) string {
		t.Helper()
		arguments := append([]string{"-jar", jars[0], name}, files...)
		output, err := command(t, 5*time.Minute, "java", arguments...)
		if err != nil {
			t.Fatalf("jwarc %s: %v\n%s", name, err, tail(output))
		}
		return output
	}
	jwarc("validate")
	listed := jwarc("ls")
	answers := strings.Count(listed, " response ") + strings.Count(listed, " revisit ")
	assert.True(t, answers == len(ours), "jwarc lists %d responses, the index has %d", answers, len(ours))
	t.Logf("jwarc: %d responses, valid", answers)
}

// asOurs gives lines the spellings in which ours are. The npm package makes simpler keys, and
// digests without "sha256:".
func asOurs(theirs []warc.Entry) []warc.Entry {
	for i := range theirs {
		e := &theirs[i]
		e.Key = warc.IndexKey(e.URL)
		if !strings.HasPrefix(e.Digest, "sha256:") {
			e.Digest = "sha256:" + e.Digest
		}
		if e.Mime == "-" || e.Mime == "unk" {
			e.Mime = ""
		}
	}
	return theirs
}

// startReplay lets pywb serve files, and returns where it serves them: URLs begin with
// http://address/real/.
func startReplay(t *testing.T, files []string) (address string) {
	t.Helper()
	bin := python(t, pythonReplay)
	dir := t.TempDir()
	manage := func(arguments ...string) {
		t.Helper()
		script := `cd "$0" && exec "$@"`
		all := append([]string{"-c", script, dir, filepath.Join(bin, "wb-manager")}, arguments...)
		if output, err := command(t, 5*time.Minute, "sh", all...); err != nil {
			t.Fatalf("%v\n%s", err, tail(output))
		}
	}
	manage("init", "real")
	manage(append([]string{"add", "real"}, files...)...)
	return servePywb(t, bin, dir)
}

// servePywb lets pywb serve what its settings in a directory say.
func servePywb(t *testing.T, bin, dir string) (address string) {
	t.Helper()
	address = freeAddresses(t, []site{{host: "127.0.0.4"}})[0]
	host, port, _ := strings.Cut(address, ":")
	p := start(t, filepath.Join(bin, "wayback"), "-d", dir, "-b", host, "-p", port)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pywb: %s", tail(p.output.String()))
		}
	})
	awaitServer(t, p, address)
	return address
}

// replay compares pages that pywb serves with what amble says is stored.
func replay(t *testing.T, c *crawl, files []string, ours []warc.Entry) {
	address := startReplay(t, files)
	compared, duplicates := 0, 0
	for i, e := range ours {
		duplicate := e.Mime == warc.MimeRevisit
		if e.Status != 200 || !duplicate && i%37 != 0 || duplicate && duplicates >= 20 {
			continue
		}
		if duplicate {
			duplicates++
		}
		want, err := command(t, time.Minute, c.binary, "archive", "get", e.URL, "-c",
			filepath.Join(c.dir, "config.yaml"))
		must.True(t, err == nil, "%v\n%s", err, want)
		got := download(t, "http://"+address+"/real/"+e.Time.Format("20060102150405")+"id_/"+e.URL)
		assert.True(t, got == want, "%s: pywb gives %d bytes, amble %d", e.URL, len(got), len(want))
		compared++
	}
	assert.True(t, compared >= 20, "only %d pages were compared", compared)
	t.Logf("pywb: %d pages are as amble says, %d of them by revisit records", compared, duplicates)
}

// awaitServer waits until somebody listens.
func awaitServer(t *testing.T, p *process, address string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/")
		if err == nil {
			resp.Body.Close()
			return
		}
		if !p.running() || time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v\n%s", address, err, tail(p.output.String()))
		}
	}
}

func download(t *testing.T, url string) string {
	t.Helper()
	resp := must.Get(http.Get(url))(t)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(b)
}
