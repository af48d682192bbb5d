//go:build !linux

package crawl

import "time"

// alarm wakes the dispatcher at an instant. One that is set anew or stopped may still ring once for the instant before. The dispatcher owns it.
type alarm struct {
	rings chan struct{}
	timer *time.Timer
	ended chan struct{}
}

// newAlarm makes an alarm that is not set.
func newAlarm() (*alarm, error) {
	a := &alarm{rings: make(chan struct{}, 1), ended: make(chan struct{})}
	a.timer = time.AfterFunc(time.Hour, a.ring)
	a.timer.Stop()
	return a, nil
}

func (a *alarm) ring() {
	select {
	case a.rings <- struct{}{}:
	default: // one ring is as good as two
	}
}

// watch waits until the alarm is closed: the runtime rings.
func (a *alarm) watch() { <-a.ended }

// set makes the alarm ring at an instant, and at no other.
func (a *alarm) set(at time.Time) error {
	a.timer.Reset(time.Until(at))
	return nil
}

// rang is to be called for each ring that was received.
func (a *alarm) rang() {}

// stop makes the alarm ring no more.
func (a *alarm) stop() error {
	a.timer.Stop()
	return nil
}

// close ends watch.
func (a *alarm) close() error {
	close(a.ended)
	return a.stop()
}
