//go:build !race

package frontier

// raceDetector says that everything takes several times as long.
const raceDetector = false
