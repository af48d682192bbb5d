package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// What Show prints is a config file that says the same.
func TestShowCanBeReadBack(t *testing.T) {
	hard := []string{`https://example.com/?a=1,2#"x"`, "true", "a: b", "ü", "'", strings.Repeat("long ", 60)}
	body := "crawl:\n  workers: 3\n"
	c := must.Get(inFile(t, body, []string{"fetch.max_body=3MiB", "server.token=geheim",
		`scope.include=["a,b", "(x # y)"]`}, []string{"AMBLE_POLITENESS_DELAY=90m"}))(t)
	c.Crawl.Seeds = hard
	var out strings.Builder
	must.Do(t, c.Show(&out))
	text := out.String()
	for _, want := range []string{
		"delay: 1h30m ", " # AMBLE_POLITENESS_DELAY\n", "max_body: 3MiB ", " # --set\n", "workers: 3 ",
		"config.yaml:2\n", " # default\n",
	} {
		assert.Contains(t, text, want, "Show lacks")
	}
	assert.True(t, !strings.Contains(text, "geheim"), "Show gives the token away")
	path := filepath.Join(t.TempDir(), "again.yaml")
	text = strings.ReplaceAll(text, "(set, not shown)", "geheim")
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	again, err := Load(path, nil, nil)
	must.Do(t, err, text)
	for _, s := range settings() {
		assert.Deep(t, s.value(again), s.value(c), s.key, "is read back as")
	}
}
