package layers

import (
	"go/ast"
	"slices"
	"testing"
)

// clockReaders are the packages that may read the clock: the engine and the clock of the machine that
// it reads by, the commands, and what stands in for servers and networks in tests. Everywhere else time
// is an argument.
func clockReaders() []string {
	return []string{
		"cmd/amble", "internal/modules/operator", "internal/system/boot", "internal/engine/crawl",
		"internal/engine/node",
		"internal/testing/simulate", "internal/testing/testweb", "internal/testing/testweb/todayweb",
		"internal/testing/zoo", "internal/testing/memnet", "internal/testing/testkit", "internal/testing/crawlcheck",
	}
}

// TestClock: no other package calls time.Now, time.Since or time.Until.
func TestClock(t *testing.T) {
	for _, f := range readSource(t) {
		if f.isTest() || slices.Contains(clockReaders(), f.pkg()) {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "time" &&
					(s.Sel.Name == "Now" || s.Sel.Name == "Since" || s.Sel.Name == "Until") {
					t.Errorf("%s reads the clock", f.at(n))
				}
			}
			return true
		})
	}
}
