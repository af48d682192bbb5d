package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clockReaders are the packages that may read the clock: the engine and the clock of the machine that
// it reads by, the commands, and what stands in for servers and networks in tests. Everywhere else time
// is an argument.
func clockReaders() []string {
	return []string{
		"cmd/amble", "internal/boot", "internal/crawl", "internal/node", "internal/simulate", "internal/testweb", "internal/zoo",
		"internal/memnet", "internal/testkit",
	}
}

// TestClock: no other package calls time.Now, time.Since or time.Until.
func TestClock(t *testing.T) {
	read := 0
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, filepath.FromSlash("../../"))))
		if read++; slices.Contains(clockReaders(), dir) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "time" &&
					(s.Sel.Name == "Now" || s.Sel.Name == "Since" || s.Sel.Name == "Until") {
					t.Errorf("%s reads the clock", set.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || read < 200 {
		t.Errorf("%d files, %v", read, err)
	}
}
