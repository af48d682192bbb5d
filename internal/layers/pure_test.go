package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPurePackages: the packages that make check tests without the race detector start no goroutine.
func TestPurePackages(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	pure := regexp.MustCompile(`(?m)^PURE +:= (.+)$`).FindSubmatch(makefile)
	if pure == nil {
		t.Fatal("the Makefile has no PURE")
	}
	list := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, strings.Fields(string(pure[1]))...)...)
	list.Dir = "../.."
	dirs, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range strings.Fields(string(dirs)) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			checkNoGoroutine(t, name)
		}
	}
}

func checkNoGoroutine(t *testing.T, name string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		starts := false
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr: // of a sync.WaitGroup, an errgroup, a test
			starts = n.Sel.Name == "Go" || n.Sel.Name == "Parallel" || n.Sel.Name == "RunParallel"
		}
		if starts {
			t.Errorf("%s starts a goroutine", set.Position(n.Pos()))
		}
		return true
	})
}
