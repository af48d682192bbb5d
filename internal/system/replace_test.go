package system

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestReplaceFile: commit sees the old content, its error keeps that, and nothing is left beside the file.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must.Do(t, WriteFile(path, []byte("old")))
	refused := errors.New("refused")
	for _, c := range []struct {
		err  error
		want string
	}{{refused, "old"}, {nil, "new"}} {
		err := ReplaceFile(path, []byte("new"), 0o640, func() error {
			before, _ := os.ReadFile(path)
			assert.True(t, string(before) == "old", "%q before the commit", before)
			fresh, _ := os.ReadFile(path + ".new")
			assert.True(t, string(fresh) == "new", "the commit precedes the content: %q", fresh)
			return c.err
		})
		assert.Is(t, err, c.err)
		got, _ := os.ReadFile(path)
		assert.True(t, string(got) == c.want, "%q, want %q", got, c.want)
	}
	files, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(files) == 1, "%v, %v", files, err)
}
