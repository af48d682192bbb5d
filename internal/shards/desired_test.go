package shards

import (
	"errors"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// TestDesiredFormat holds the bytes of the register: nodes of later versions read them.
func TestDesiredFormat(t *testing.T) {
	for _, golden := range []string{
		`{"version":1,"paused":true}`,
		`{"version":1,"paused":true,"opt_outs":[{"scope":"domain","value":"a.example","reason":"mail","by":"anna",` +
			`"at":"2026-11-20T00:00:00Z","until":"2027-01-01T00:00:00Z"}],"settings":{"crawl":{"workers":8}},"reloads":2,` +
			`"deletions":[{"host":"b.example","before":"2026-11-21T00:00:00Z","shards":[3,5]}]}`,
	} {
		d, err := decodeDesired([]byte(golden))
		if b := d.encode(); err != nil || !d.Paused || string(b) != golden {
			t.Errorf("%+v is %s, %v", d, b, err)
		}
	}
	if d, err := decodeDesired(nil); err != nil || d.Paused || d.Version != desiredVersion {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestStrike: a deletion is over when all of its shards have carried it out.
func TestStrike(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	d := Desired{Deletions: []Deletion{{"a.example", at, []cluster.Shard{1}}, {"", at, []cluster.Shard{1, 2}}}}
	done := d.Deletions[1]
	if err := errors.Join(d.strike(&done, 2), d.strike(&done, 1)); err != nil || len(d.Deletions) != 1 ||
		d.Deletions[0].Host == "" {
		t.Errorf("%+v, %v", d, err)
	}
	if err := d.strike(&done, 1); !errors.Is(err, errUnchanged) {
		t.Errorf("%+v, %v", d, err)
	}
}

// FuzzDesired: whatever somebody writes to the register is of this version, or an error.
func FuzzDesired(f *testing.F) {
	f.Add([]byte(`{"version":1,"paused":true}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`[`))
	f.Add([]byte(`{"version":1,"settings":{"a":1},"opt_outs":[{"scope":"range","value":"192.0.2.1"}]}`))
	f.Add([]byte(`{"version":1,"settings":7}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDesired(b)
		if err != nil {
			return
		}
		again, err := decodeDesired(d.encode())
		if err != nil || d.Version != desiredVersion || len(again.OptOuts) != len(d.OptOuts) {
			t.Errorf("%q: %+v, %v", b, d, err)
		}
	})
}
