package layers

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// sourceFile is a file of Go that people write: generated ones are left out.
type sourceFile struct {
	path string // from the root of the repository, with slashes
	text []byte
	set  *token.FileSet
	tree *ast.File
}

func (f sourceFile) pkg() string { return filepath.ToSlash(filepath.Dir(f.path)) }

func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f sourceFile) at(n ast.Node) token.Position { return f.set.Position(n.Pos()) }

func (f sourceFile) lines() int { return bytes.Count(f.text, []byte("\n")) }

// isModule reports whether a file of the program, or of the list of formats, registers a module: it is left out of the
// core. So are files of other packages that only modules use, which may import no more than the rest of theirs.
func (f sourceFile) isModule() bool {
	plugs := f.pkg() == "cmd/amble" || f.pkg() == "internal/output/formats"
	return plugs && bytes.HasPrefix(f.text, []byte("//go:build !core\n"))
}

// readSource returns all files of the repository.
func readSource(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parseSource()
	must.True(t, err == nil && len(files) >= 200, "%d files, %v", len(files), err)
	return files
}

// walkFiles calls visit with every file of the repository whose name has the suffix. What make builds is not part of
// it: bin may hold a copy of the source.
func walkFiles(suffix string, visit func(path string) error) error {
	const root = "../../.."
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(root, "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		return visit(path)
	})
}

// parseSource parses all files of the repository, once for all tests.
var parseSource = sync.OnceValues(func() (files []sourceFile, err error) {
	set := token.NewFileSet()
	err = walkFiles(".go", func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err == nil && !ast.IsGenerated(tree) {
			path = strings.TrimPrefix(filepath.ToSlash(path), "../../../")
			files = append(files, sourceFile{path, text, set, tree})
		}
		return err
	})
	return files, err
})

// readList reads a list of testdata: a line an entry, comments after #.
func readList(t *testing.T, name string) (entries []string) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			entries = append(entries, line)
		}
	}
	return entries
}
