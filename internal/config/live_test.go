package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestPatchIsStrongest(t *testing.T) {
	path := writeFile(t, "crawl:\n  workers: 3\n  max_depth: 2\nlog:\n  level: warn\n")
	patch := []byte(`{"crawl": {"workers": 9}, "scope": {"exclude": ["\\.pdf$", "a,b"]}, "log": {"level": "debug"}}`)
	before := must.Get(Load(path, []string{"log.level=error"}, nil))(t)
	c := must.Get(LoadPatched(path, []string{"log.level=error"}, nil, patch))(t)
	assert.True(t, c.Crawl.Workers == 9 && c.Crawl.MaxDepth == 2 && c.Log.Level == "debug" &&
		slices.Equal(c.Scope.Exclude, []string{`\.pdf$`, "a,b"}), "%+v", c)
	assert.Slice(t, before.Changes(c), []string{"crawl.workers", "scope.exclude", "log.level"}, "changes")
	assert.Equal(t, len(before.Fixed(c)), 0, "cannot change")
	assert.Equal(t, c.Source("crawl.workers").String(), "API", "the source is", c.Source("crawl.workers"))
}

// TestSharedSettingsComeThrough: what nodes have in common is the same after its way through JSON into the settings of
// another file.
func TestSharedSettingsComeThrough(t *testing.T) {
	const file = `politeness:
  delay: 1500ms
  per_ip: 3
  ip_delay: 250ms
  groups: [{name: shops, hosts: ["*.shop.example"], cname: ["*.cdn.example"], per_group: 4, delay: 2s}]
  overrides: [{hosts: ["*.example.com"], delay: 5s, host_pages: 100, pause: false}]
  hours: ["mon-fri 22:00-06:00", "sat,sun"]
consent:
  policy: [train-ai=skip-storing]
fetch: {user_agent: "kite/1.0", contact: "https://kite.example.com/bot"}
`
	want := must.Get(Load(writeFile(t, file), nil, nil))(t)
	encoded := must.Get(json.Marshal(want.Shared()))(t)
	var decoded map[string]any
	must.Do(t, json.Unmarshal(encoded, &decoded))
	patch := must.Get(json.Marshal(PatchOfKeys(decoded)))(t)
	got := must.Get(LoadPatched(writeFile(t, "crawl:\n  workers: 3\n"), nil, nil, patch))(t)
	assert.Slice(t, want.Changes(got), []string{"data_dir", "crawl.workers"}, "other settings after the way")
}

// TestSharedSettings: how hosts are treated, and who the crawler says that it is, is the same on all nodes.
func TestSharedSettings(t *testing.T) {
	for _, s := range settings() {
		section, _, _ := strings.Cut(s.key, ".")
		of := slices.Contains([]string{"politeness", "consent"}, section) ||
			slices.Contains([]string{"fetch.user_agent", "fetch.contact", "identity.url"}, s.key)
		if of = of && !s.is("path"); of != s.is("shared") { // a file is that of one node
			t.Errorf("%s is shared: %t", s.key, s.is("shared"))
		}
	}
}

func TestPatchesThatMakeNoSense(t *testing.T) {
	for patch, want := range map[string]string{
		`{"crawl": {"workers": -1}}`:      `API: crawl.workers: read -1; want 0 to 4096`,
		`{"crawl": {"wokers": 1}}`:        `API: crawl.wokers: unknown key; did you mean crawl.workers?`,
		`{"politeness": {"delay": 5}}`:    `API: politeness.delay: read "5"; want a duration`,
		`{"scope": {"include": ["("]}}`:   `API: scope.include: read "("; missing closing`,
		`[1]`:                             `API: read a list; want settings`,
		`{"crawl": {"workers": {"a":1}}}`: `API: crawl.workers: read a mapping; want a whole number`,
		`{"crawl": `:                      `API`,
		`{} {}`:                           `API`,
	} {
		_, err := LoadPatched(writeFile(t, ""), nil, nil, []byte(patch))
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), want), "%s: %v, want %s", patch, err, want)
	}
}

func TestWhatCannotChange(t *testing.T) {
	path := writeFile(t, "server:\n  token: sesame\n")
	before := must.Get(Load(path, nil, nil))(t)
	after := must.Get(LoadPatched(path, nil, nil,
		[]byte(`{"data_dir": "/elsewhere", "server": {"token": "open"}, "log": {"level": "warn"}}`)))(t)
	text := before.Fixed(after).Error()
	assert.True(t, strings.Count(text, "\n") == 1 &&
		strings.Contains(text, "data_dir: read \"/elsewhere\"; cannot change while the crawl runs") &&
		!strings.Contains(text, "sesame"), "%v", text)
}

// A token changes with the file, and not over the API; a patch whose other values are wrong still
// has its fixed settings named.
func TestTokensChangeWithTheFile(t *testing.T) {
	path := writeFile(t, "server:\n  token: one\n")
	before := must.Get(Load(path, nil, nil))(t)
	must.Do(t, os.WriteFile(path, []byte("server:\n  token: two\n  read_token: three\n"), 0o600))
	after := must.Get(Load(path, nil, nil))(t)
	assert.AtMost(t, len(before.Fixed(after)), 0)
	fixed := before.FixedIn(
		[]byte(`{"server": {"token": "two", "listen": "127.0.0.1:8377"}, "data_dir": "x", "crawl": {"workers": 0}}`))
	var keys []string
	for _, p := range fixed {
		keys = append(keys, p.Key)
	}
	assert.True(t, slices.Equal(keys, []string{"server.token", "data_dir"}) && !strings.Contains(fixed.Error(), "two"),
		"%v", fixed)
}

// Every word of the tags is one that the table knows, and what is live is not for the file alone.
func TestTags(t *testing.T) {
	for _, s := range settings() {
		for _, word := range strings.Fields(s.tag.Get("is")) {
			assert.True(t, slices.Contains([]string{"live", "shared", "agreed", "secret", "file", "path"}, word),
				"%s is %q", s.key, word)
		}
		if s.is("live") && (s.is("file") || s.is("secret") || s.is("path")) {
			t.Errorf("%s is live, and %s", s.key, s.tag.Get("is"))
		}
	}
	assert.AtLeast(t, len(LiveKeys()), 20, "live are", LiveKeys())
}

func TestEntries(t *testing.T) {
	c := must.Get(Load(writeFile(t, "server:\n  token: sesame\npoliteness:\n  delay: 90s\n  overrides: [{hosts: "+
		"[\"*.example.com\"], delay: 5s}]\n"+
		"fetch:\n  auth: [\"a.example basic sesame:sesame\"]\n"), []string{"fetch.max_body=3MiB"}, nil))(t)
	encoded := must.Get(json.Marshal(c.Entries()))(t)
	for _, want := range []string{
		`{"Key":"server.token","Value":"(set, not shown)"`, `{"Key":"server.read_token","Value":""`,
		`{"Key":"politeness.delay","Value":"1m30s"`,
		`{"Key":"politeness.overrides","Value":[{"delay":"5s","hosts":["*.example.com"]}]`,
		`{"Key":"fetch.auth","Value":["(set, not shown)"]`,
		`{"Key":"fetch.max_body","Value":"3MiB","Source":"--set"`, `{"Key":"crawl.seeds","Value":[],"Source":"default"`,
		`{"Key":"crawl.workers","Value":64,"Source":"default","Live":true}`,
	} {
		assert.Contains(t, string(encoded), want, "is not in", encoded)
	}
	assert.True(t, !strings.Contains(string(encoded), "sesame"), "the token is shown")
}

func writeFile(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	must.Do(t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

func TestPatchOf(t *testing.T) {
	sets := []string{"crawl.workers=7", "politeness.delay=90s",
		`politeness.overrides=[{hosts: ["*.example.com"], delay: 5s}]`, `scope.exclude=["a,b", c]`,
		"fetch.max_body=3MiB", "crawl.exit_when_done=false", "data_dir=/x"}
	patch := must.Get(PatchOf(sets))(t)
	encoded := must.Get(json.Marshal(patch))(t)
	path := writeFile(t, "")
	a := must.Get(LoadPatched(path, nil, nil, encoded))(t)
	b := must.Get(Load(path, sets, nil))(t)
	different := a.Changes(b)
	assert.True(t, len(different) <= 0 && a.Crawl.Workers == 7, "%s: %v are different", encoded, different)
	_, err := PatchOf([]string{"crawl.wokers=1"})
	assert.True(t, err != nil && strings.Contains(err.Error(), "did you mean crawl.workers?"), "%v", err)
}

// TestSectionInASection: a setting two sections deep has the value of the file, of the environment, of a
// flag and of a patch, each stronger than the one before.
func TestSectionInASection(t *testing.T) {
	file := "cluster:\n  embed:\n    listen: 127.0.0.1:1\n    listen_routes: 127.0.0.1:9\n"
	set, environ := []string{"cluster.embed.listen=127.0.0.1:3"}, []string{"AMBLE_CLUSTER_EMBED_LISTEN=127.0.0.1:2"}
	patch := must.Get(PatchOf([]string{"cluster.embed.listen=127.0.0.1:4"}))(t)
	text := must.Get(json.Marshal(patch))(t)
	path := writeFile(t, file)
	for i, sources := range []struct {
		sets, environ []string
		patch         []byte
	}{{}, {nil, environ, nil}, {set, environ, nil}, {set, environ, text}} {
		c := must.Get(LoadPatched(path, sources.sets, sources.environ, sources.patch))(t)
		assert.Equal(t, c.Cluster.Embed.Listen, fmt.Sprintf("127.0.0.1:%d", i+1), "source", i+1)
		assert.Equal(t, c.Cluster.Embed.ListenRoutes, "127.0.0.1:9", "source", i+1, "the other setting")
	}
}
