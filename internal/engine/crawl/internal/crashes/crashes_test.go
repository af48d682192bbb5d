package crashes

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestCrashFilesAreBounded: the directory holds so many files and bytes, and no more.
func TestCrashFilesAreBounded(t *testing.T) {
	c := Files{Dir: filepath.Join(t.TempDir(), "crashes"), Version: "1"}
	now := time.Now()
	wrote := 0
	for i := range maxFiles + 10 {
		if _, err := c.Write(Crash{Cause: "bomb", Stack: []byte("stack")}, now.Add(time.Duration(i))); err == nil {
			wrote++
		}
	}
	if files, err := os.ReadDir(c.Dir); err != nil || len(files) != maxFiles || wrote != maxFiles {
		t.Errorf("%d files, %d written: %v", len(files), wrote, err)
	}
	c = Files{Dir: filepath.Join(t.TempDir(), "crashes")}
	large := make([]byte, maxBytes/3)
	for i := range 5 {
		_, err := c.Write(Crash{Cause: "bomb", Stack: large}, now.Add(time.Duration(i)))
		assert.Equal(t, (err == nil), (i < 2), "file", i, err)
	}
	if info, err := os.Stat(c.Dir); err != nil || info.Mode().Perm()&^0o750 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
