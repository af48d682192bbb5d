package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
)

// finding is one old word in a file.
type finding struct {
	path string
	line int
	word string // as old.txt has it
	in   where
}

// ownFiles are about old words.
var ownFiles = []string{"internal/testing/words", "docs/GLOSSARY.md"}

// proseFiles are the endings of files that are read as prose from end to end.
var proseFiles = []string{".md", ".yaml", ".txtar", ".html", ".js", "Makefile", "Dockerfile", ".service"}

// scan finds the old words in all files of a repository, in the order of their paths and lines.
func scan(repository fs.FS, l *lists) ([]finding, error) {
	var found []finding
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(ownFiles, name):
			return skip(entry)
		case entry.IsDir() && skipped(name):
			return fs.SkipDir
		case entry.IsDir() || !isText(name):
			return nil
		}
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		f := file{lists: l, path: name}
		if strings.HasSuffix(name, ".go") {
			err = f.scanGo(content)
		} else {
			f.scanProse(string(content), 1)
		}
		slices.SortStableFunc(f.found, func(a, b finding) int { return a.line - b.line })
		found = append(found, f.found...)
		return err
	})
	return found, err
}

func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// skipped reports whether a directory holds nothing that people of this project wrote.
func skipped(dir string) bool {
	switch base := path.Base(dir); base {
	case "bin", "dist", "data", "demo-data", "vendor":
		return true
	default:
		return base[0] == '.' && base != "."
	}
}

// isText reports whether a file is scanned. Of test data these are the scripts alone.
func isText(name string) bool {
	if strings.Contains("/"+name, "/testdata/") {
		return strings.HasSuffix(name, ".txtar")
	}
	return strings.HasSuffix(name, ".go") ||
		slices.ContainsFunc(proseFiles, func(ending string) bool { return strings.HasSuffix(name, ending) })
}

// file is a file that is being scanned.
type file struct {
	lists *lists
	path  string
	found []finding
}

func (f *file) add(word string, line int, in where) {
	if !f.lists.keeps(word, f.path) {
		f.found = append(f.found, finding{f.path, line, word, in})
	}
}

// scanProse finds old words in a text that begins on the given line.
func (f *file) scanProse(text string, line int) {
	text = f.lists.quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)) })
	at := 0
	for _, m := range f.lists.prose.FindAllStringIndex(text, -1) {
		line += strings.Count(text[at:m[0]], "\n")
		at = m[0]
		f.add(strings.ToLower(strings.Join(strings.Fields(text[m[0]:m[1]]), " ")), line, inProse)
	}
}

// scanGo finds old words in a Go file: in the name of the file, in names that it declares, in
// comments and in strings.
func (f *file) scanGo(source []byte) error {
	base, _, _ := strings.Cut(path.Base(f.path), ".")
	f.scanName(base, 1)
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, f.path, source, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", f.path, err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		for _, name := range declared(n) {
			f.scanName(name.Name, files.Position(name.Pos()).Line)
		}
		return true
	})
	var s scanner.Scanner
	positions := files.AddFile(f.path, -1, len(source))
	s.Init(positions, source, nil, scanner.ScanComments)
	for {
		pos, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return nil
		case token.COMMENT, token.STRING:
			f.scanProse(text, positions.Line(pos))
		}
	}
}

// declared returns the names that a node declares.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Key, n.Value)
		}
	}
	return nil
}

func identifiers(expressions ...ast.Expr) (names []*ast.Ident) {
	for _, e := range expressions {
		if name, ok := e.(*ast.Ident); ok {
			names = append(names, name)
		}
	}
	return names
}

// scanName finds old words among those that a name is made of.
func (f *file) scanName(name string, line int) {
	for _, word := range split(name) {
		if old, ok := f.lists.old[word]; ok && old.where&inNames != 0 {
			f.add(word, line, inNames)
		}
	}
}

// split returns the words of a name in lower case: "HTTPRenewals_test" is http, renewals, test.
func split(name string) (words []string) {
	runes := []rune(name)
	begin := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !isBoundary(runes, i) {
			continue
		}
		if word := strings.ToLower(strings.Trim(string(runes[begin:i]), "_")); word != "" {
			words = append(words, word)
		}
		begin = i
	}
	return words
}

// isBoundary reports whether a word of a name begins at rune i.
func isBoundary(runes []rune, i int) bool {
	before, at := runes[i-1], runes[i]
	if before == '_' || at == '_' {
		return true
	}
	if !unicode.IsUpper(at) {
		return false
	}
	return !unicode.IsUpper(before) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}
