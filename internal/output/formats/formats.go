// Package formats is the list of the forms of output that the program has. A new one is a package of its own, and a
// line here.
package formats

import (
	"slices"

	"github.com/amble-crawler/amble/internal/output/archive"
)

// All returns the formats, in the order in which they are written.
func All() []archive.Format { return slices.Concat(archive.Pages(), ofModules(), archive.References()) }

// Names returns the values of output.format, in the order of All: the names of the formats, and that of none.
func Names() []string { return append(archive.Names(All()), archive.FormatNone) }
