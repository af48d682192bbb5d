package access

import (
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/service/server"
)

// ReloadText says what reading the settings again has come to, a line a fact.
func ReloadText(done *server.SettingsChange) (lines []string) {
	if len(done.Changed) > 0 {
		lines = append(lines, "changed: "+strings.Join(done.Changed, ", "))
	}
	if s := done.Seeds; s != nil && s.Added+s.Changed+s.Removed > 0 {
		lines = append(lines, fmt.Sprintf("seeds: %d added, %d changed, %d removed", s.Added, s.Changed, s.Removed))
	}
	if lines == nil {
		lines = append(lines, "nothing has changed")
	}
	if len(done.Kept) > 0 {
		lines = append(lines, "kept from amble control set, which amble control reload --undo undoes: "+
			strings.Join(done.Kept, ", "))
	}
	if n := len(done.BadSeeds); n > 0 {
		lines = append(lines, fmt.Sprintf("%s bad and left out, so no seed is removed", console.Are(n, "seed")))
	}
	return lines
}
