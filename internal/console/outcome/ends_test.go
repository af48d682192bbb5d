package outcome

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestEndsAreDocumented: the table of docs/OPERATING.md has all ends, and no other.
func TestEndsAreDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/OPERATING.md"))(t)
	var want strings.Builder
	for _, k := range Ends() {
		fmt.Fprintf(&want, "| `%s` | %d | %s |\n", k.End, k.Code, k.Text)
	}
	assert.Contains(t, string(page), "|---|---|---|\n"+want.String()+"\n", "docs/OPERATING.md should have",
		want.String())
}

// TestEndOf: each exit code of an error belongs to one end.
func TestEndOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want crawl.End
	}{
		{console.Exit(console.ExitNoSeed, nil), console.ExitNoSeed, EndNoSeed},
		{NothingInside(3), console.ExitUsage, EndNothing},
		{console.Usagef("wrong"), console.ExitUsage, EndUsage},
		{os.ErrExist, console.ExitInUse, EndInUse},
		{os.ErrExist, console.ExitRefused, EndRefused},
		{storage.ErrCorrupt, console.ExitDamaged, EndDamaged},
		{fmt.Errorf("commit: %w", storage.ErrNoSpace), console.ExitProblem, EndDiskFull},
		{os.ErrExist, console.ExitProblem, EndFailed},
	} {
		assert.Equal(t, EndOf(c.err, c.code), c.want, c.err, "with exit code", c.code)
	}
}
