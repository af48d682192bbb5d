package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestClusterPage: the config files of docs/CLUSTER.md are correct, and each is that of a node.
func TestClusterPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/CLUSTER.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d config files", len(blocks))
	}
	embedded, encryption, alone := string(blocks[0][1]), string(blocks[1][1]), string(blocks[2][1])
	more, ok := strings.CutPrefix(encryption, "cluster:\n")
	if !ok {
		t.Fatalf("%s are no settings of a cluster", encryption)
	}
	for i, text := range []string{embedded, embedded + more, alone} {
		c, err := inFile(t, text, []string{"cluster.node=machine"}, nil)
		if err != nil || !c.InCluster() || (c.Cluster.Embed.Listen != "") != (i < 2) ||
			(c.Cluster.TLSKey != "") != (i == 1) {
			t.Errorf("file %d: %v", i+1, err)
		}
	}
}

// TestCompose: the environment of each container of docs/service/compose.yaml is correct, and each node
// has a name of its own.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("../../docs/service/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Hostname    string            `yaml:"hostname"`
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Services) != 3 {
		t.Fatal(err, file)
	}
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
		if e := c.Cluster.Embed; len(e.Routes) != 3 || c.Cluster.Credentials == "" || c.Cluster.Name != "crawl" {
			t.Errorf("%s: %+v", name, c.Cluster)
		}
	}
	if len(names) != 3 {
		t.Errorf("the nodes are %v", names)
	}
}
