//go:build core

package formats

import (
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Requisites is nil: this program is the core alone.
var Requisites func(text []byte, contentType string, base weburl.URL, most int) (all []extract.Requisite, left int)

// ofModules is empty: this program is the core alone.
func ofModules() []archive.Format { return nil }
