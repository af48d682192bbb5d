package layers

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
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
	files := readSource(t)
	for _, pkg := range packagesOf(t, "PURE") {
		for _, f := range filesOf(files, pkg) {
			for _, start := range f.starts() {
				t.Errorf("%s starts a goroutine", start)
			}
		}
	}
	for _, pkg := range packagesOf(t, "MIXED") {
		tests := 0
		for _, f := range filesOf(files, pkg) {
			for _, decl := range f.tree.Decls {
				if test, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(test.Name.Name, concurrent) {
					tests++
				}
			}
			for _, start := range f.starts() {
				if f.isTest() && !strings.HasSuffix(f.path, "bench_test.go") {
					t.Errorf("%s starts a goroutine outside of a test %s...", start, concurrent)
				}
			}
		}
		if tests == 0 {
			t.Errorf("%s has no test %s..., so nothing there needs the race detector", pkg, concurrent)
		}
	}
}

// packagesOf returns the packages that the Makefile has in a variable, from the root of the repository.
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
	list := exec.Command("go",
		append([]string{"list", "-f", "{{.ImportPath}}"}, strings.Fields(string(value[1]))...)...)
	list.Dir = "../.."
	paths, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(paths), module, ""))
}

// filesOf returns the files of a package.
func filesOf(files []sourceFile, pkg string) (of []sourceFile) {
	for _, f := range files {
		if f.pkg() == pkg {
			of = append(of, f)
		}
	}
	return of
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
			positions = append(positions, f.at(n))
		}
		return true
	})
	return positions
}
