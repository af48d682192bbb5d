//go:build !linux

package crawl

// newAlarm makes an alarm that is not set.
func newAlarm() (alarm, error) { return newTimerAlarm(), nil }
