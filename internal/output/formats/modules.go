//go:build !core

package formats

import (
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// ofModules returns the formats of modules.
func ofModules() []archive.Format { return []archive.Format{warcfiles.Format(), webhook.Format()} }
