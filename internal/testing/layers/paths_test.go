package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestPaths: every Go file that a page names by its path exists, so that a reader finds it.
func TestPaths(t *testing.T) {
	path := regexp.MustCompile("`([a-z_0-9]+/[a-z_0-9/]*\\.go)`")
	found := 0
	err := walkFiles(".md", func(page string) error {
		text, err := os.ReadFile(page)
		for _, m := range path.FindAllSubmatch(text, -1) {
			found++
			_, err := os.Stat(filepath.Join("../../..", string(m[1])))
			assert.True(t, err == nil, "%s: there is no %s", page, m[1])
		}
		return err
	})
	assert.True(t, err == nil && found >= 20, "%d paths, %v", found, err)
}
