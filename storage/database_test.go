package storage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestOneDoor: only rowfile uses bbolt, and nothing here goes past it but for the version and sizes. So nothing reads a
// page outside of Guard, and no row without its checksum.
func TestOneDoor(t *testing.T) {
	files := must.Get(os.ReadDir("."))(t)
	doors := []string{"View", "Update", "Batch", "Begin", "Commit", "Check", "Bucket", "Cursor", "ForEach", "Put"}
	for _, f := range files {
		name := f.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, i := range file.Imports {
			assert.Not(t, i.Path.Value, `"go.etcd.io/bbolt"`, name, "imports bbolt")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok && slices.Contains(doors, s.Sel.Name) && isBolt(s.X) {
				t.Errorf("%s calls %s of bbolt", name, s.Sel.Name)
			}
			return true
		})
	}
}

// isBolt reports whether an expression is a field with something of bbolt.
func isBolt(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Bolt"
}
