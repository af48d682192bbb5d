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
			if before, _ := os.ReadFile(path); string(before) != "old" {
				t.Errorf("%q before the commit", before)
			}
			if fresh, _ := os.ReadFile(path + ".new"); string(fresh) != "new" {
				t.Errorf("the commit precedes the content: %q", fresh)
			}
			return c.err
		})
		assert.Is(t, err, c.err)
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
