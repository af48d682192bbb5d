package layers

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestCoreImportsNoModule holds the rule of docs/ARCHITECTURE.md: the core imports no module, and no
// module imports another one. Imports that break it today stand in testdata/breaks.txt, by file. That
// list only shrinks: a new break fails, and so does one that is listed and gone.
func TestCoreImportsNoModule(t *testing.T) {
	modules := readModules(t)
	listed := readList(t, "breaks.txt")
	for _, file := range readSource(t) {
		if file.isTest() || modules.of(file.pkg()) == testTools {
			continue
		}
		for _, spec := range file.tree.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			imported, own := strings.CutPrefix(path, module)
			if !own || !modules.breaks(file.pkg(), imported) || file.isModule() {
				continue
			}
			entry := file.path + " " + imported
			if i := slices.Index(listed, entry); i >= 0 {
				listed = slices.Delete(listed, i, i+1)
				continue
			}
			t.Errorf("%s imports %s of the module %q: the core imports no module", file.path, imported,
				modules.of(imported))
		}
	}
	for _, entry := range listed {
		t.Errorf("testdata/breaks.txt lists %q, which is mended: remove the line", entry)
	}
}

// TestCoreProgram: the program without its modules links none of them, and no test tool. Its lines are a budget: what
// is over it stands in testdata/over.txt.
func TestCoreProgram(t *testing.T) {
	const core = "core"
	out := must.Get(exec.Command("go", "list", "-tags", core, "-deps", "-f",
		"{{range .GoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}\n{{end}}", "../../../cmd/amble").Output())(t)
	modules, lines := readModules(t), 0
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		pkg, own := strings.CutPrefix(path, module)
		if !own {
			continue
		}
		assert.Equal(t, modules.of(pkg), "", "the core links", pkg, "of the module")
		text := must.Get(os.ReadFile(file))(t)
		lines += bytes.Count(text, []byte("\n"))
	}
	limit := maxCoreLines
	for _, entry := range readList(t, "over.txt") {
		if n, is := strings.CutPrefix(entry, "lines of the core "); is {
			limit, _ = strconv.Atoi(n)
		}
	}
	assert.AtMost(t, lines, limit, "the core lines, more than what is over its budget may only shrink")
	t.Logf("the core has %d lines", lines)
}

// TestCrawlcheckProgram: the conformance suite links nothing of amble but its web, and the judge that the audit shares.
func TestCrawlcheckProgram(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", "../../../cmd/crawlcheck").Output())(t)
	own := []string{"cmd/crawlcheck", "internal/testing/crawlcheck", "internal/testing/testweb",
		"internal/rules/manners"}
	for path := range strings.FieldsSeq(string(out)) {
		domain, _, _ := strings.Cut(path, "/")
		pkg, amble := strings.CutPrefix(path, module)
		assert.True(t, (!amble || slices.Contains(own, pkg)) &&
			(amble || !strings.Contains(domain, ".") || domain == "golang.org"), "cmd/crawlcheck links %s", path)
	}
}

func TestModuleRule(t *testing.T) {
	modules := moduleTable{"internal/a": "one", "internal/b": "two", "internal/tool": testTools,
		"internal/a/tool": testTools}
	for _, c := range []struct {
		importer, imported string
		breaks             bool
	}{
		{"frontier", "internal/a", true},
		{"frontier", "internal/a/part", true},
		{"frontier", "internal/ab", false},
		{"internal/a", "internal/a/part", false},
		{"internal/a", "frontier", false},
		{"internal/a", "internal/b", true},
		{"frontier", "internal/tool", true},
		{"internal/a", "internal/a/tool", true},
		{"internal/a", "internal/tool", true},
	} {
		assert.Equal(t, modules.breaks(c.importer, c.imported), c.breaks, c.importer, "imports", c.imported,
			"breaks the rule")
	}
}

// testTools is the row of what only tests use: it is part of no program.
const testTools = "test tools"

// moduleTable has the module of each package that belongs to one. All others are the core.
type moduleTable map[string]string

// readModules reads the rows "| module | `package`, `package` | ..." below the heading of modules.
func readModules(t *testing.T) moduleTable {
	t.Helper()
	text := must.Get(os.ReadFile("../../../docs/ARCHITECTURE.md"))(t)
	_, section, _ := strings.Cut(string(text), "\n## Core and modules\n")
	section, _, _ = strings.Cut(section, "\n## ")
	modules := make(moduleTable)
	for _, row := range regexp.MustCompile("(?m)^\\| ([a-z ]+) \\| (`[^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range strings.Split(row[2], ",") {
			name = strings.Trim(name, " `")
			if _, err := os.Stat("../../../" + name); err != nil {
				t.Errorf("docs/ARCHITECTURE.md: module %s: %v", row[1], err)
			}
			modules[name] = row[1]
		}
	}
	must.True(t, len(modules) != 0, "docs/ARCHITECTURE.md has no table of modules")
	return modules
}

// of returns the module of a package: that of the longest name that covers it. Empty is the core.
func (m moduleTable) of(pkg string) (module string) {
	longest := 0
	for name, part := range m {
		if (pkg == name || strings.HasPrefix(pkg, name+"/")) && len(name) > longest {
			longest, module = len(name), part
		}
	}
	return module
}

func (m moduleTable) breaks(importer, imported string) bool {
	of := m.of(imported)
	return of != "" && of != m.of(importer)
}
