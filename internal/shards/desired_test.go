package shards

import (
	"encoding/json"
	"testing"
)

// TestDesiredFormat holds the bytes of the register: nodes of later versions read them.
func TestDesiredFormat(t *testing.T) {
	const golden = `{"version":1,"paused":true}`
	d, err := decodeDesired([]byte(golden))
	if b, _ := json.Marshal(d); err != nil || !d.Paused || string(b) != golden {
		t.Errorf("%+v is %s, %v", d, b, err)
	}
	if d, err := decodeDesired(nil); err != nil || d.Paused || d.Version != desiredVersion {
		t.Errorf("%+v, %v", d, err)
	}
}

// FuzzDesired: whatever somebody writes to the register is of this version, or an error.
func FuzzDesired(f *testing.F) {
	f.Add([]byte(`{"version":1,"paused":true}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := decodeDesired(b); err == nil && d.Version != desiredVersion {
			t.Errorf("%q: %+v", b, d)
		}
	})
}
