package membership

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestPermissions: the account that FORMAT.md has to copy allows the subjects that a node needs, and no others.
func TestPermissions(t *testing.T) {
	text := must.Get(os.ReadFile("FORMAT.md"))(t)
	_, account, _ := strings.Cut(string(text), "subscribe: ")
	account, _, _ = strings.Cut(account, "]")
	var documented []string
	for _, quoted := range regexp.MustCompile(`"[^"]+"`).FindAllString(account, -1) {
		documented = append(documented, strings.Trim(quoted, `"`))
	}
	publish, subscribe := names.Permissions()
	assert.Slice(t, documented, append(subscribe, publish...), "FORMAT.md")
}
