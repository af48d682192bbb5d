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

	"github.com/amble-crawler/amble/internal/testing/must"
)

// concurrent is how the tests that need the race detector are called in packages that are mostly
// tested without it.
const concurrent = "TestConcurrent"

// TestPurePackages: what make check tests with the race detector starts goroutines, and nothing else that has tests
// does.
func TestPurePackages(t *testing.T) {
	racing, mixed := packagesOf(t, "RACING"), packagesOf(t, "MIXED")
	tested, starts := make(map[string]bool), make(map[string][]token.Position)
	for _, f := range readSource(t) {
		pkg := f.pkg()
		tested[pkg] = tested[pkg] || f.isTest()
		if slices.Contains(racing, pkg) || !strings.HasSuffix(f.path, "bench_test.go") &&
			(f.isTest() || !slices.Contains(mixed, pkg)) {
			starts[pkg] = append(starts[pkg], f.starts()...)
		}
	}
	for pkg := range tested {
		if races := slices.Contains(racing, pkg); races && len(starts[pkg]) == 0 {
			t.Errorf("%s starts no goroutine: it is not RACING", pkg)
		} else if tested[pkg] && !races {
			for _, start := range starts[pkg] {
				t.Errorf("%s starts a goroutine, and %s is not RACING", start, pkg)
			}
		}
	}
	for _, pkg := range mixed {
		if !slices.ContainsFunc(readSource(t), func(f sourceFile) bool { return f.pkg() == pkg && f.hasConcurrent() }) {
			t.Errorf("%s has no test %s..., so nothing there needs the race detector", pkg, concurrent)
		}
	}
}

// hasConcurrent reports whether the file has a test for the race detector.
func (f sourceFile) hasConcurrent() bool {
	return slices.ContainsFunc(f.tree.Decls, func(d ast.Decl) bool {
		test, is := d.(*ast.FuncDecl)
		return is && strings.HasPrefix(test.Name.Name, concurrent)
	})
}

// packagesOf returns the packages that the Makefile has in a variable, from the root of the repository.
func packagesOf(t *testing.T, variable string) []string {
	t.Helper()
	makefile := must.Get(os.ReadFile("../../../Makefile"))(t)
	makefile = regexp.MustCompile(`\\\n`).ReplaceAll(makefile, nil)
	value := regexp.MustCompile(`(?m)^` + variable + ` +:= (.+)$`).FindSubmatch(makefile)
	must.True(t, value != nil, "the Makefile has no %s", variable)
	list := exec.Command("go",
		append([]string{"list", "-f", "{{.ImportPath}}"}, strings.Fields(string(value[1]))...)...)
	list.Dir = "../../.."
	paths := must.Get(list.Output())(t)
	return strings.Fields(strings.ReplaceAll(string(paths), module, ""))
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
