//go:build !core

package inspect

import (
	"context"
	"strings"

	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// HostNames returns at most limit names of hosts that begin with a prefix. It inspects a bounded
// number of names.
func (v *records) HostNames(_ context.Context, begin string, most int) (names []string, err error) {
	seen := 0
	err = v.store.Names("", "", func(name string, _ storage.HostID) error {
		if seen == maxNames || len(names) == most {
			return storage.ErrStop
		}
		seen++
		if strings.HasPrefix(name, begin) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Records returns what the view reads, and the seeds in force; nil: they are not known.
func (v *View) Records() (s Store, set *seeds.Set) {
	if v.o.Seeds != nil {
		set = v.o.Seeds()
	}
	return v.store, set
}

// Options returns the options of the view.
func (v *View) Options() Options { return v.o }
