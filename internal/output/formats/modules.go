//go:build !core

package formats

import (
	"github.com/amble-crawler/amble/internal/modules/requisites"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Requisites returns what a document is made of, for archives, and how much is left out; nil: the program was built
// without that.
var Requisites func(text []byte, contentType string, base weburl.URL, most int) (
	all []extract.Requisite, left int) = requisites.Find

// ofModules returns the formats of modules.
func ofModules() []archive.Format { return []archive.Format{warcfiles.Format(), webhook.Format()} }
