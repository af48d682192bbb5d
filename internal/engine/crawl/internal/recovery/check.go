//go:build !core

package recovery

// Check decodes the marks that a recovery uses, and reports what cannot be read.
func Check(s Store, found func(what string, err error)) {
	r := &recovery{store: s, leases: newLeases()}
	_, err := r.openDeaths()
	found("deaths", err)
	_, err = r.openUncommitted()
	found("uncommitted requests", err)
	found("leases", r.openLeases())
}
