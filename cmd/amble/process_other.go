//go:build !unix

package main

func forbidDump() {}

// descriptorLimit is not known on this system.
func descriptorLimit() (limit int, known bool) { return 0, false }
