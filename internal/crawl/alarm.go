package crawl

import "time"

// alarm wakes the dispatcher at an instant. One that is set again or stopped may still ring once
// for the instant before. The dispatcher owns it.
type alarm interface {
	watch()                 // passes on what rings until the alarm is closed
	rings() <-chan struct{} // where it rings
	rang()                  // is called for each ring that was received
	set(at time.Time) error // makes it ring at an instant, and at no other
	stop() error            // makes it ring no more
	close() error           // ends watch
}

// timerAlarm is an alarm by a timer of the runtime.
type timerAlarm struct {
	ringing chan struct{}
	timer   *time.Timer
	ended   chan struct{}
}

func newTimerAlarm() *timerAlarm {
	a := &timerAlarm{ringing: make(chan struct{}, 1), ended: make(chan struct{})}
	a.timer = time.AfterFunc(time.Hour, a.ring)
	a.timer.Stop()
	return a
}

func (a *timerAlarm) ring() {
	select {
	case a.ringing <- struct{}{}:
	default: // one ring is as good as two
	}
}

// watch waits until the alarm is closed: the runtime rings.
func (a *timerAlarm) watch() { <-a.ended }

func (a *timerAlarm) rings() <-chan struct{} { return a.ringing }

func (a *timerAlarm) rang() {}

func (a *timerAlarm) set(at time.Time) error {
	a.timer.Reset(time.Until(at))
	return nil
}

func (a *timerAlarm) stop() error {
	a.timer.Stop()
	return nil
}

func (a *timerAlarm) close() error {
	close(a.ended)
	return a.stop()
}
