package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestClusterPage: the config files of docs/CLUSTER.md are correct, and each is that of a node.
func TestClusterPage(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/CLUSTER.md"))(t)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	must.True(t, len(blocks) == 3, "%d config files", len(blocks))
	embedded, encryption, alone := string(blocks[0][1]), string(blocks[1][1]), string(blocks[2][1])
	more, ok := strings.CutPrefix(encryption, "cluster:\n")
	must.True(t, ok, "%s are no settings of a cluster", encryption)
	for i, text := range []string{embedded, embedded + more, alone} {
		c, err := inFile(t, text, []string{"cluster.node=machine"}, nil)
		assert.True(t, err == nil && c.InCluster() && (c.Cluster.Embed.Listen != "") == (i < 2) &&
			(c.Cluster.TLSKey != "") == (i == 1), "file %d: %v", i+1, err)
	}
}

// TestCompose: the environment of each container of docs/service/compose.yaml is correct, and each node
// has a name of its own.
func TestCompose(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/service/compose.yaml"))(t)
	var file struct {
		Services map[string]struct {
			Hostname    string            `yaml:"hostname"`
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	err := yaml.Unmarshal(text, &file)
	must.True(t, err == nil && len(file.Services) == 3, "%v %v", err, file)
	names := make(map[string]bool)
	for name, service := range file.Services {
		var environ []string
		for _, key := range slices.Sorted(maps.Keys(service.Environment)) {
			environ = append(environ, key+"="+service.Environment[key])
		}
		c, err := inFile(t, "", []string{"cluster.node=" + service.Hostname}, environ)
		if err != nil || !c.InCluster() {
			t.Errorf("%s: %v", name, err)
			continue
		}
		names[c.Cluster.NodeName()] = true
		assert.True(t, len(c.Cluster.Embed.Routes) == 3 && c.Cluster.Credentials != "" && c.Cluster.Name == "crawl",
			"%s: %+v", name, c.Cluster)
	}
	assert.Equal(t, len(names), 3, "the nodes are", names)
}

// What decides which URLs a crawl has, and what is done with them, is to agree on: a node that changes such a setting
// says so, by its key alone. What belongs to a node is not.
func TestAgreed(t *testing.T) {
	other := map[string]string{
		"crawl.exit_when_done": "false", "crawl.give_up_after": "7m", "crawl.max_pages": "7", "crawl.max_depth": "7",
		"scope.mode": "any", "scope.include": "[a, b]", "scope.exclude": "[x]", "scope.check_outside": "true",
		"limits.host_urls": "7", "limits.host_pages": "7", "limits.domain_pages": "7",
		"urls.strip_parameters": "[x]", "urls.sort_query": "true", "urls.drop_empty_query": "true",
		"urls.collapse_slashes": "true", "urls.normalize_escapes": "true", "urls.max_length": "77",
		"traps.path_depth": "7", "traps.repeated_segments": "7", "traps.query_parameters": "7",
		"traps.queries_per_path": "7", "traps.same_digest": "7", "traps.calendar": "false", "traps.refresh": "false",
		"traps.maze_pages": "7", "traps.expensive": "crawl", "traps.domain_hosts": "7",
		"traps.session_ids": "false", "traps.session_names": "[x]",
		"robots.product_token": "kite", "robots.fallback_tokens": "[kite]", "robots.obey": "false",
		"robots.obey_nofollow": "false", "robots.forbidden_denies": "true",
		"fetch.content_types": "[text/*]", "fetch.max_body": "7MiB", "fetch.max_redirects": "7",
		"extract.media": "true", "extract.forms": "true", "extract.max_links": "7", "extract.max_depth": "7",
		"extract.rules": "[{pattern: x, links: [a]}]", "sitemaps.max_files": "7",
		"sitemaps.follow": "false", "sitemaps.guess": "true", "sitemaps.feeds": "false", "sitemaps.max_urls": "7",
		"sitemaps.max_size": "7KiB", "retry.max_attempts": "7",
		"recrawl.policy": "never", "recrawl.interval": "7h", "recrawl.min_interval": "7m",
		"recrawl.max_interval": "70000h", "recrawl.budget": "7", "recrawl.similar_bits": "7", "recrawl.gone_after": "7",
		"recrawl.rules": "[{pattern: x, policy: never}]",
	}
	load := func(key, value string) map[string]string {
		t.Helper()
		c := must.Get(inFile(t, strings.Replace(key, ".", ":\n  ", 1)+": "+value+"\n", nil, nil))(t)
		return c.Agreed()
	}
	agreed := load("crawl.workers", "7")
	assert.Slice(t, slices.Sorted(maps.Keys(agreed)), slices.Sorted(maps.Keys(other)), "to agree on")
	for key, value := range other {
		for name, text := range load(key, value) {
			assert.True(t, (text != agreed[name]) == (name == key), "%s: %s, and %s is %s and was %s", key, value,
				name, text, agreed[name])
		}
	}
	long := func(last string) string {
		return load("scope.include", "["+strings.Repeat("x, ", 1000)+last+"]")["scope.include"]
	}
	many := long("x")
	assert.True(t, len(many) <= longestAgreed && many != long("y"), "a long list is %q", many)
	defaults := Default()
	defaults.Cluster.Name = "other"
	assert.True(t, maps.Equal(defaults.Agreed(), agreed), "what belongs to a node is to agree on")
}
