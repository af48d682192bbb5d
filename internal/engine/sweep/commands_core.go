//go:build core

package sweep

// DeletionStore is empty: nothing deletes URLs.
type DeletionStore any

// ofCommands is empty: this program has no such commands.
func ofCommands() map[string]open { return nil }
