package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// maxFamilies is how many names a reader finds in internal/.
const maxFamilies = 12

// TestFamilies: each folder of internal/ is a family of packages with a page, which says what the family may import.
// The rules of modules and their tests are in TestCoreImportsNoModule.
func TestFamilies(t *testing.T) {
	folders := must.Get(os.ReadDir("../../../internal"))(t)
	assert.AtMost(t, len(folders), maxFamilies, "internal/ folders, more than")
	may := make(map[string][]string)
	for _, folder := range folders {
		page, err := os.ReadFile(filepath.Join("../../../internal", folder.Name(), "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		may[folder.Name()] = allowed(t, folder.Name(), string(page))
	}
	for _, file := range readSource(t) {
		family, own := strings.CutPrefix(file.path, "internal/")
		if !own || file.isTest() || file.isModule() {
			continue
		}
		family, _, _ = strings.Cut(family, "/")
		if may[family] == nil {
			continue
		}
		for _, spec := range file.tree.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if other := familyOf(path); other != "" && other != family && !slices.Contains(may[family], other) {
				t.Errorf("%s imports %s, and internal/%s/README.md does not say that it may import %s", file.path,
					path, family, other)
			}
		}
	}
}

// allowed reads what a family may import besides itself; nil: anything, or all of the core, which other tests hold.
func allowed(t *testing.T, family, page string) []string {
	t.Helper()
	line := regexp.MustCompile(`(?s)\nMay import: (.+?)\.\n`).FindStringSubmatch(page)
	if line == nil {
		t.Errorf("internal/%s/README.md does not say what the family may import", family)
		return nil
	}
	switch line[1] {
	case "anything", "all of the core":
		return nil
	case "nothing of amble":
		return []string{}
	}
	return strings.FieldsFunc(line[1], func(r rune) bool { return strings.ContainsRune("`, \n", r) })
}

// familyOf returns the folder of internal/, or the package at the top, of an import; empty: it is none of ours.
func familyOf(path string) string {
	pkg, own := strings.CutPrefix(path, module)
	if !own {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(pkg, "internal/"), "/")
	return name
}
