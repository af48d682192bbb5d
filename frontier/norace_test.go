//go:build !race

package frontier

// raceDetector reports whether everything takes several times as long.
const raceDetector = false
