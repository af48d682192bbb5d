// Package layers tests the import table of docs/ARCHITECTURE.md: the test fails if a package
// imports one of its own floor or above.
package layers
