//go:build !core

package recovery

import "github.com/amble-crawler/amble/internal/engine/remote"

// Check decodes the marks that a recovery uses, and reports what cannot be read.
func Check(s Store, found func(what string, err error)) {
	r := &recovery{store: s, lent: remote.NewHistory()}
	_, err := r.openDeaths()
	found("deaths", err)
	_, err = r.openUncommitted()
	found("uncommitted requests", err)
	found("leases", r.openLeases())
}
