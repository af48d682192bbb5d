//go:build core

package main

// modules is empty: this program is the core alone.
func modules() []module { return nil }
