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

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// Every number and duration has a least and a greatest value; the values next to them are refused
// with both.
func TestRanges(t *testing.T) {
	tests := []struct{ key, below, above, allowed string }{
		{"crawl.workers", "-1", "4097", "0 to 4096"},
		{"crawl.max_rate", "0.0009", "100001", "0, or 0.001 to 100000"},
		{"crawl.give_up_after", "-1ns", "8761h", "0s to 8760h"},
		{"crawl.shutdown_grace", "-1ns", "61m", "0s to 1h"},
		{"crawl.max_pages", "-1", "1000000000000001", "0 to 1000000000000000"},
		{"crawl.max_bytes", "1025TiB", "2000TiB", "0B to 1024TiB"},
		{"crawl.max_time", "999ms", "8785h", "0s, or 1s to 8784h"},
		{"crawl.max_depth", "-1", "65536", "0 to 65535"},
		{"politeness.delay", "-1ns", "169h", "0s to 168h"},
		{"politeness.adaptive_factor", "-0.1", "1000.1", "0 to 1000"},
		{"politeness.adaptive_max", "0", "169h", "1ms to 168h"},
		{"politeness.per_host", "0", "257", "1 to 256"},
		{"politeness.host_bandwidth", "1023", "1025GiB", "0, or 1KiB to 1TiB"},
		{"politeness.per_ip", "0", "4097", "1 to 4096"},
		{"politeness.ip_delay", "-1ns", "169h", "0s to 168h"},
		{"traps.maze_pages", "-1", "1000001", "0 to 1000000"},
		{"politeness.ip_rate", "-1", "1001", "0 to 1000"},
		{"politeness.per_domain", "-1", "4097", "0 to 4096"},
		{"politeness.domain_delay", "-1ns", "169h", "0s to 168h"},
		{"fetch.timeout", "999us", "61m", "1ms to 1h"},
		{"fetch.connect_timeout", "999us", "61m", "1ms to 1h"},
		{"fetch.header_timeout", "999us", "61m", "1ms to 1h"},
		{"fetch.idle_timeout", "999us", "61m", "1ms to 1h"},
		{"fetch.resolve_timeout", "999us", "61m", "1ms to 1h"},
		{"fetch.min_rate", "1025KiB", "2MiB", "0B to 1MiB"},
		{"fetch.bandwidth", "1023", "1025GiB", "0, or 1KiB to 1TiB"},
		{"fetch.max_header", "1023", "16385KiB", "1KiB to 16MiB"},
		{"fetch.max_body", "1023", "1048577KiB", "1KiB to 1GiB"},
		{"fetch.spool_above", "4095", "1048577KiB", "4KiB to 1GiB"},
		{"fetch.memory_budget", "1048575", "1025GiB", "1MiB to 1TiB"},
		{"fetch.max_redirects", "-1", "51", "0 to 50"},
		{"fetch.resolvers", "0", "1025", "1 to 1024"},
		{"extract.max_links", "0", "1000001", "1 to 1000000"},
		{"extract.max_depth", "0", "513", "1 to 512"},
		{"sitemaps.max_urls", "0", "10000001", "1 to 10000000"},
		{"urls.max_length", "63", "2049", "64 to 2048"},
		{"sitemaps.max_size", "1023", "1048577KiB", "1KiB to 1GiB"},
		{"output.max_age", "-1s", "8761h", "0s to 8760h"},
		{"output.on_complete_timeout", "900ms", "169h", "1s to 168h"},
		{"output.webhook.queue", "63MiB", "1025TiB", "64MiB to 1024TiB"},
		{"output.gzip_level", "0", "10", "1 to 9"},
		{"output.zstd_level", "0", "5", "1 to 4"},
		{"retry.max_attempts", "0", "101", "1 to 100"},
		{"retry.delay", "999us", "25h", "1ms to 24h"},
		{"recrawl.interval", "999ms", "87601h", "1s to 87600h"},
		{"recrawl.min_interval", "999ms", "87601h", "1s to 87600h"},
		{"recrawl.max_interval", "999ms", "87601h", "1s to 87600h"},
		{"recrawl.budget", "-1", "1000000001", "0 to 1000000000"},
		{"recrawl.share", "-0.1", "1.1", "0 to 1"},
		{"recrawl.similar_bits", "-1", "33", "0 to 32"},
		{"recrawl.gone_after", "0", "101", "1 to 100"},
		{"limits.host_urls", "-1", "2147483648", "0 to 2147483647"},
		{"limits.host_pages", "-1", "2147483648", "0 to 2147483647"},
		{"limits.domain_pages", "-1", "2147483648", "0 to 2147483647"},
		{"limits.session", "-1", "1000000001", "0 to 1000000000"},
		{"traps.path_depth", "-1", "2049", "0 to 2048"},
		{"traps.repeated_segments", "-1", "2049", "0 to 2048"},
		{"traps.query_parameters", "-1", "2049", "0 to 2048"},
		{"traps.queries_per_path", "-1", "2147483648", "0 to 2147483647"},
		{"traps.same_digest", "-1", "2147483648", "0 to 2147483647"},
		{"traps.domain_hosts", "-1", "2147483648", "0 to 2147483647"},
		{"archive.requisites_per_page", "0", "1001", "1 to 1000"},
		{"archive.dedupe_delay", "9ms", "61m", "10ms to 1h"},
		{"sitemaps.max_files", "-1", "65536", "0 to 65535"},
		{"storage.max_size", "1MiB", "1025TiB", "0, or 16MiB to 1024TiB"},
		{"storage.backup_every", "59s", "8785h", "0s, or 1m to 8784h"},
		{"storage.min_free", "1025TiB", "2000TiB", "0B to 1024TiB"},
		{"urlfrontier.delay", "-1ns", "169h", "0s to 168h"},
		{"audit.max_size", "1048575", "1025TiB", "0, or 1MiB to 1024TiB"},
		{"audit.keep", "-1ns", "876001h", "0s to 876000h"},
		{"cluster.shards", "0", "65537", "1 to 65536"},
		{"cluster.replicas", "2", "6", "1, 3 or 5"},
		{"cluster.weight", "0", "65536", "1 to 65535"},
		{"identity.lookup_days", "-1", "3651", "0 to 3650"},
		{"output.max_file", "63KiB", "1025GiB", "64KiB to 1TiB"},
	}
	// A size cannot be negative, so storage.min_free and fetch.min_rate have two values above
	// instead.
	bounded := map[string]bool{}
	for _, tt := range tests {
		bounded[tt.key] = true
		for _, value := range []string{tt.below, tt.above} {
			_, err := inFile(t, "", []string{tt.key + "=" + value}, nil)
			var problems Errors
			assert.True(t, errors.As(err, &problems) && problems[0].Key == tt.key && problems[0].Read == value &&
				problems[0].Message == "want "+tt.allowed, "%s=%s: got %v, want it to say that %s is allowed", tt.key,
				value, err, tt.allowed)
		}
	}
	for _, s := range settings() {
		kind := wanted(s.typ)
		assert.True(t, !strings.Contains(kind, "number") && !strings.Contains(kind, "duration") &&
			!strings.Contains(kind, "size") || bounded[s.key], "%s has no row in this table", s.key)
	}
}

// record writes what Load says into the testdata files, for a person to read and judge.
var record = flag.Bool("record", false, "rewrite the expected messages of testdata/*.bad.yaml")

const wantPrefix = "# want: "

// TestBadFiles loads each testdata/*.bad.yaml and compares every message with the "# want:" lines
// at its end.
func TestBadFiles(t *testing.T) {
	paths := must.Get(filepath.Glob("testdata/*.bad.yaml"))(t)
	must.True(t, len(paths) >= 30, "%d bad files, want at least 30", len(paths))
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := Load(path, nil, nil)
			var problems Errors
			must.True(t, errors.As(err, &problems) && c == nil, "Load = %v, %v; want no Config and Errors", c, err)
			got := strings.ReplaceAll(problems.Error(), filepath.Dir(path)+"/", "")
			if *record {
				recordWants(t, path, got)
				return
			}
			assert.Equal(t, got, wants(t, path), "messages differ")
		})
	}
}

func TestGoodFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.good.yaml")
	must.True(t, err == nil && len(paths) != 0, "%v %v", paths, err)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := Load(path, nil, nil)
			assert.True(t, err == nil, "Load: %v", err)
		})
	}
}

func wants(t *testing.T, path string) string {
	body := must.Get(os.ReadFile(path))(t)
	var lines []string
	for scanner := bufio.NewScanner(bytes.NewReader(body)); scanner.Scan(); {
		if want, ok := strings.CutPrefix(scanner.Text(), wantPrefix); ok {
			lines = append(lines, want)
		}
	}
	must.True(t, len(lines) != 0, "%s says nowhere what is expected; want lines that begin with %q", path, wantPrefix)
	return strings.Join(lines, "\n")
}

func recordWants(t *testing.T, path, got string) {
	body := must.Get(os.ReadFile(path))(t)
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
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
}
