//go:build race

package node

// raceEnabled: the race detector takes memory of its own.
const raceEnabled = true
