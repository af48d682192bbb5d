package layers

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// libraries are the packages that other modules import.
var libraries = []string{"robots", "politeness"}

// TestExportedTypes fails when a library exports something that mentions a type of an internal
// package: other modules cannot name such a type.
func TestExportedTypes(t *testing.T) {
	for _, name := range libraries {
		for _, found := range internalTypes(importPackage(t, "../../../"+name)) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// TestInternalTypes holds that internalTypes sees every place where a type can stand.
func TestInternalTypes(t *testing.T) {
	hidden := types.NewPackage(module+"internal/hidden", "hidden")
	secret := types.NewNamed(types.NewTypeName(token.NoPos, hidden, "Secret", nil), types.Typ[types.Int], nil)
	newVar := func(name string, t types.Type) *types.Var { return types.NewVar(token.NoPos, nil, name, t) }
	signature := func(param, result types.Type) *types.Signature {
		params, results := types.NewTuple(newVar("p", param)), types.NewTuple(newVar("r", result))
		return types.NewSignatureType(nil, nil, nil, params, results, false)
	}
	method := types.NewFunc(token.NoPos, nil, "Do", signature(secret, types.Typ[types.Int]))
	cases := map[string]types.Type{
		"itself":    secret,
		"pointer":   types.NewPointer(secret),
		"slice":     types.NewSlice(secret),
		"array":     types.NewArray(secret, 2),
		"chan":      types.NewChan(types.SendRecv, secret),
		"key":       types.NewMap(secret, types.Typ[types.Int]),
		"element":   types.NewMap(types.Typ[types.Int], secret),
		"parameter": signature(secret, types.Typ[types.Int]),
		"result":    signature(types.Typ[types.Int], secret),
		"field":     types.NewStruct([]*types.Var{types.NewField(token.NoPos, nil, "F", secret, false)}, nil),
		"embedded":  types.NewStruct([]*types.Var{types.NewField(token.NoPos, nil, "f", secret, true)}, nil),
		"method":    types.NewInterfaceType([]*types.Func{method}, nil).Complete(),
	}
	for what, typ := range cases {
		p := types.NewPackage(module+"library", "library")
		p.Scope().Insert(types.NewVar(token.NoPos, p, "V", typ))
		assert.Equal(t, len(internalTypes(p)), 1, what)
	}
	p := types.NewPackage(module+"library", "library")
	private := types.NewField(token.NoPos, p, "f", secret, false)
	typ := types.NewNamed(types.NewTypeName(token.NoPos, p, "T", nil), types.NewStruct([]*types.Var{private}, nil), nil)
	p.Scope().Insert(typ.Obj())
	p.Scope().Insert(types.NewVar(token.NoPos, p, "v", secret))
	assert.Equal(t, len(internalTypes(p)), 0, "unexported names")
	receiver := types.NewVar(token.NoPos, p, "t", typ)
	params := types.NewTuple(newVar("p", types.NewPointer(secret)))
	typ.AddMethod(types.NewFunc(token.NoPos, p, "M", types.NewSignatureType(receiver, nil, nil, params, nil, false)))
	assert.Equal(t, len(internalTypes(p)), 1, "an exported method")
}

// importPackage loads the export data of the package in dir, which has all of its exported names.
func importPackage(t *testing.T, dir string) *types.Package {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", dir).Output()
	must.Do(t, err, "go list -export", dir)
	files := make(map[string]string)
	var last string
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path], last = file, path
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	p, err := importer.ForCompiler(token.NewFileSet(), "gc", lookup).Import(last)
	must.Do(t, err, "export data of", dir)
	return p
}

// internalTypes lists the exported names of p whose types mention a type of an internal package.
func internalTypes(p *types.Package) []string {
	w := walker{pkg: p, seen: make(map[types.Type]bool)}
	for _, name := range p.Scope().Names() {
		if object := p.Scope().Lookup(name); object.Exported() {
			w.walk(object.Type(), name)
		}
	}
	return w.found
}

// walker visits the types that the exported names of a package mention.
type walker struct {
	pkg   *types.Package
	seen  map[types.Type]bool
	found []string
}

func (w *walker) walk(t types.Type, at string) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		w.name(t.Obj(), at)
		w.walk(types.Unalias(t), at)
	case *types.Named:
		w.name(t.Obj(), at)
		w.declaration(t, at)
	case *types.Signature:
		w.tuple(t.Params(), at+" parameter")
		w.tuple(t.Results(), at+" result")
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() || field.Embedded() {
				w.walk(field.Type(), at+"."+field.Name())
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			w.walk(method.Type(), at+"."+method.Name())
		}
	case *types.Map:
		w.walk(t.Key(), at)
		w.walk(t.Elem(), at)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		w.walk(t.Elem(), at)
	}
}

// declaration walks a type that p declares. Types of other packages end the walk.
func (w *walker) declaration(t *types.Named, at string) {
	for argument := range t.TypeArgs().Types() {
		w.walk(argument, at)
	}
	if t.Obj().Pkg() != w.pkg {
		return
	}
	w.walk(t.Underlying(), at)
	for method := range t.Methods() {
		if method.Exported() {
			w.walk(method.Type(), at+"."+method.Name())
		}
	}
}

func (w *walker) tuple(t *types.Tuple, at string) {
	for v := range t.Variables() {
		w.walk(v.Type(), fmt.Sprintf("%s %s", at, v.Name()))
	}
}

// name records a type that belongs to an internal package.
func (w *walker) name(o *types.TypeName, at string) {
	if o.Pkg() != nil && strings.Contains(o.Pkg().Path()+"/", "/internal/") {
		w.found = append(w.found, fmt.Sprintf("%s mentions %s.%s", at, o.Pkg().Path(), o.Name()))
	}
}
