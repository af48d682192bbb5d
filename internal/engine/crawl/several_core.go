//go:build core

package crawl

import "github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"

// ownGates returns nil: this program has one engine.
func (o *Options) ownGates() gates.Gates { return nil }
