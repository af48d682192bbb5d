package layers

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
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

const module = "github.com/amble-crawler/amble/"

// soleUsers names, for some libraries, the only package that may import them outside of tests.
var soleUsers = map[string]string{
	"go.etcd.io/bbolt":                "storage",
	"github.com/spf13/viper":          "internal/config",
	"github.com/PuerkitoBio/":         "internal/web/extract",
	"github.com/nlnwa/whatwg-url/":    "internal/web/weburl",
	"github.com/nats-io/nats-server/": "internal/cluster/natsconn",
}

// forbidden are the imports that a pure package must not have.
var forbidden = map[string][]string{
	"robots":                   {"net", "net/http", "os", "sync"},
	"frontier":                 {"net/http", "os", "sync", "context", "database/sql"},
	"politeness":               {"net/http", "os", "sync", "context"},
	"internal/rules/wall":      {"net/http", "os", "sync", "context"},
	"internal/cluster":         {"net", "net/http", "os", "sync", "context"},
	"internal/rules/expensive": {"net", "net/http", "os", "sync", "context"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportTable(t *testing.T) {
	floors := readTable(t)
	missing := maps.Clone(floors)
	for _, p := range listPackages(t) {
		name := ownerOf(strings.TrimPrefix(p.ImportPath, module))
		if name == "internal/testing/layers" {
			continue
		}
		floor, known := floors[name]
		if !known {
			t.Errorf("%s is in no row of the table of docs/ARCHITECTURE.md", name)
			continue
		}
		for _, imported := range p.Imports {
			checkImport(t, floors, name, floor, imported)
		}
		delete(missing, name)
	}
	for name := range missing {
		t.Errorf("docs/ARCHITECTURE.md names package %s, which does not exist", name)
	}
}

// ownerOf returns the package of the table that a package belongs to. The internal packages of
// another package are parts of it: the compiler lets no other package import them.
func ownerOf(name string) string {
	owner, _, _ := strings.Cut(name, "/internal/")
	return owner
}

func checkImport(t *testing.T, floors map[string]int, name string, floor int, imported string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imported, module); ok {
		below, known := floors[own]
		assert.True(t, !known || below < floor, "%s (floor %d) imports %s (floor %d): imports only go down", name,
			floor, own, below)
		return
	}
	for library, user := range soleUsers {
		assert.True(t, !strings.HasPrefix(imported, library) || name == user, "%s imports %s, which only %s may", name,
			imported, user)
	}
	assert.True(t, !slices.Contains(forbidden[name], imported), "%s is pure and may not import %s", name, imported)
}

// readTable reads the floors from docs/ARCHITECTURE.md: rows "| floor | `package` | ...".
func readTable(t *testing.T) map[string]int {
	t.Helper()
	text := must.Get(os.ReadFile("../../../docs/ARCHITECTURE.md"))(t)
	floors := make(map[string]int)
	rows := regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\|")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		floors[row[2]], _ = strconv.Atoi(row[1])
	}
	must.True(t, len(floors) != 0, "docs/ARCHITECTURE.md has no import table")
	return floors
}

func listPackages(t *testing.T) (packages []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "../../../...").Output()
	must.Do(t, err, "go list")
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.ImportPath, module+"bin/") { // see walkFiles
			packages = append(packages, p)
		}
	}
}
