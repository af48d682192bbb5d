//go:build !race

package extract

// raceDetector says that everything takes several times as long.
const raceDetector = false
