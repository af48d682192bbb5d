// Package layers holds the import table of docs/ARCHITECTURE.md: its test
// fails when a package imports one of its own floor or above.
package layers
