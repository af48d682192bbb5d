package layers

import (
	"fmt"
	"go/ast"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// The budgets of a room that one mind can hold.
const (
	maxMethods      = 40     // of a type
	maxPackageLines = 8000   // of a package, without tests
	maxFileLines    = 400    // of a file, without tests
	maxColumns      = 120    // of a line, where a tab counts for four
	maxCoreLines    = 70_000 // of all packages of the program without its modules
)

// TestBudgets: what is over a budget today stands in testdata/over.txt with its size. That list only
// shrinks: whatever is over its budget and not listed fails, as does what has grown beyond its line,
// and a line of something that is within the budget.
func TestBudgets(t *testing.T) {
	allowed := make(map[string]int)
	for _, entry := range readList(t, "over.txt") {
		if strings.HasPrefix(entry, "lines of the core ") {
			continue // see TestCoreProgram
		}
		i := strings.LastIndexByte(entry, ' ')
		n, err := strconv.Atoi(entry[i+1:])
		must.Do(t, err, "testdata/over.txt", entry)
		allowed[entry[:i]] = n
	}
	over := overBudget(readSource(t))
	for what, n := range over {
		if limit, listed := allowed[what]; !listed {
			t.Errorf("%s: %d is over the budget", what, n)
		} else if n > limit {
			t.Errorf("%s: %d, was %d: what is over its budget may only shrink", what, n, limit)
		}
	}
	for what := range allowed {
		assert.Not(t, over[what], 0, "testdata/over.txt lists", what, "which is within its budget: remove the line")
	}
}

// overBudget returns the size of all that is over its budget, by its name in testdata/over.txt.
func overBudget(files []sourceFile) map[string]int {
	over := make(map[string]int)
	packages, methods := make(map[string]int), make(map[string]map[string]bool)
	for _, f := range files {
		if n := longLines(f.text); n > 0 {
			over["columns "+f.path] = n
		}
		if f.isTest() {
			continue
		}
		packages[f.pkg()] += f.lines()
		if n := f.lines(); n > maxFileLines {
			over["lines "+f.path] = n
		}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				name := f.pkg() + "." + receiver(fn)
				if methods[name] == nil {
					methods[name] = make(map[string]bool)
				}
				methods[name][fn.Name.Name] = true // once, if the core has another one
			}
		}
	}
	for name, all := range methods {
		if n := len(all); n > maxMethods {
			over["methods "+name] = n
		}
	}
	for name, n := range packages {
		if n > maxPackageLines {
			over["lines "+name] = n
		}
	}
	return over
}

// receiver returns the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		default:
			return fmt.Sprint(typ)
		}
	}
}

// longLines counts the lines of more than maxColumns characters.
func longLines(text []byte) (n int) {
	for line := range strings.Lines(string(text)) {
		if len([]rune(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))) > maxColumns {
			n++
		}
	}
	return n
}
