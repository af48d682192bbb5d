//go:build core

package storage

// purge does nothing: no command of this program deletes URLs.
func (w *writer) purge(*hostRow, *Purge) error { return nil }
