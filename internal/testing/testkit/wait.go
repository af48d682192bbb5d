package testkit

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what has to come. It is no measure of anything: only a hang
// reaches it, however slow and busy the machine is.
const Patience = 5 * time.Minute

// Eventually waits until holds returns no error. It has patience again whenever the error is another
// one: that is how far it has come.
func Eventually(t testing.TB, what string, holds func() error) {
	t.Helper()
	last := ""
	for end := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if err.Error() != last {
			last, end = err.Error(), time.Now().Add(Patience)
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s: %v", what, err)
		}
	}
}

// Until waits until something holds.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}
