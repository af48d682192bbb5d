//go:build core

package formats

import "github.com/amble-crawler/amble/internal/output/archive"

// ofModules is empty: this program is the core alone.
func ofModules() []archive.Format { return nil }
