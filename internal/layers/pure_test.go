package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// concurrent is how the tests that need the race detector are called in packages that are mostly
// tested without it.
const concurrent = "TestConcurrent"

// TestPurePackages: what make check tests without the race detector starts no goroutine.
func TestPurePackages(t *testing.T) {
	for _, dir := range packagesOf(t, "PURE") {
		for _, f := range parseAll(t, dir) {
			for _, start := range f.starts() {
				t.Errorf("%s starts a goroutine", start)
			}
		}
	}
	for _, dir := range packagesOf(t, "MIXED") {
		tests := 0
		for _, f := range parseAll(t, dir) {
			for _, decl := range f.tree.Decls {
				if test, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(test.Name.Name, concurrent) {
					tests++
				}
			}
			for _, start := range f.starts() {
				if strings.HasSuffix(f.name, "_test.go") && !strings.HasSuffix(f.name, "bench_test.go") {
					t.Errorf("%s starts a goroutine outside of a test %s...", start, concurrent)
				}
			}
		}
		if tests == 0 {
			t.Errorf("%s has no test %s..., so nothing there needs the race detector", dir, concurrent)
		}
	}
}

// packagesOf returns the directories of the packages that the Makefile has in a variable.
func packagesOf(t *testing.T, variable string) []string {
	t.Helper()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	makefile = regexp.MustCompile(`\\\n`).ReplaceAll(makefile, nil)
	value := regexp.MustCompile(`(?m)^` + variable + ` +:= (.+)$`).FindSubmatch(makefile)
	if value == nil {
		t.Fatalf("the Makefile has no %s", variable)
	}
	list := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, strings.Fields(string(value[1]))...)...)
	list.Dir = "../.."
	dirs, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(dirs))
}

// sourceFile is a parsed file.
type sourceFile struct {
	name string
	set  *token.FileSet
	tree *ast.File
}

func parseAll(t *testing.T, dir string) (files []sourceFile) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(names), err)
	}
	for _, name := range names {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, sourceFile{name, set, tree})
	}
	return files
}

// starters are functions and methods that start goroutines: of a sync.WaitGroup, an errgroup, a
// test, a benchmark, context and time, and of servers.
var starters = []string{"Go", "Parallel", "RunParallel", "AfterFunc", "ListenAndServe", "NewServer", "NewTLSServer",
	"NewUnstartedServer"}

// starts returns where the file starts goroutines outside of tests for the race detector.
func (f *sourceFile) starts() (positions []token.Position) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		starts := false
		switch n := n.(type) {
		case *ast.FuncDecl:
			return !strings.HasPrefix(n.Name.Name, concurrent)
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = slices.Contains(starters, n.Sel.Name)
		}
		if starts {
			positions = append(positions, f.set.Position(n.Pos()))
		}
		return true
	})
	return positions
}
