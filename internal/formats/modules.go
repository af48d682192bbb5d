//go:build !core

package formats

import (
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/warc/warcfiles"
)

// ofModules returns the formats of modules.
func ofModules() []archive.Format { return []archive.Format{warcfiles.Format()} }
