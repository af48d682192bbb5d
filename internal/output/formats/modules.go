//go:build !core

package formats

import (
	"github.com/amble-crawler/amble/internal/modules/pagerules"
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

// PageRule compiles a rule of extract.rules.
func PageRule(text *extract.RuleText) (extract.Rule, error) { return pagerules.New(text) }

// ofModules returns the formats of modules.
func ofModules() []archive.Format { return []archive.Format{warcfiles.Format(), webhook.Format()} }
