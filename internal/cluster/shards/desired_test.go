package shards

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
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
		b := d.encode()
		assert.True(t, err == nil && d.Paused && string(b) == golden, "%+v is %s, %v", d, b, err)
	}
	d, err := decodeDesired(nil)
	assert.True(t, err == nil && !d.Paused && d.Version == desiredVersion, "%+v, %v", d, err)
}

// TestStrike: a deletion is over when all of its shards have carried it out.
func TestStrike(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	d := Desired{Deletions: []Deletion{{"a.example", at, []cluster.Shard{1}}, {"", at, []cluster.Shard{1, 2}}}}
	done := d.Deletions[1]
	err := errors.Join(d.strike(&done, 2), d.strike(&done, 1))
	assert.True(t, err == nil && len(d.Deletions) == 1 && d.Deletions[0].Host != "", "%+v, %v", d, err)
	assert.Is(t, d.strike(&done, 1), errUnchanged, d)
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
		assert.True(t, err == nil && d.Version == desiredVersion && len(again.OptOuts) == len(d.OptOuts), "%q: %+v, %v",
			b, d, err)
	})
}

// keptRegister keeps what is written. The first write has no answer.
type keptRegister struct{ values [][]byte }

func (r *keptRegister) Read(context.Context) ([]byte, uint64, error) {
	return r.values[len(r.values)-1], uint64(len(r.values)), nil
}

func (r *keptRegister) Write(_ context.Context, data []byte, expected uint64) (uint64, error) {
	if expected != uint64(len(r.values)) {
		return 0, journal.ErrRefused
	}
	if r.values = append(r.values, data); len(r.values) == 2 {
		return 0, storage.ErrLogDown
	}
	return uint64(len(r.values)), nil
}

func (r *keptRegister) Values(context.Context, func([]byte, uint64)) error { return nil }

// silentRegister does not answer a write.
type silentRegister struct{ keptRegister }

func (r *silentRegister) Write(ctx context.Context, _ []byte, _ uint64) (uint64, error) {
	<-ctx.Done()
	return 0, fmt.Errorf("write: %w: %w", storage.ErrLogDown, ctx.Err())
}

// commanded returns a node that knows no more than a register.
func commanded(r register) *Node {
	return &Node{engines: &engines{common: common{o: &Options{Timeout: time.Second},
		desired: newDesired(r, slog.New(slog.DiscardHandler))}}}
}

// TestRemovalWithoutAnswer: an opt-out was there if the command has removed it, also if the answer was lost.
func TestRemovalWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := optout.Entry{Scope: "host", Value: "a.example"}
		r := &keptRegister{[][]byte{Desired{Version: desiredVersion, OptOuts: []optout.Entry{e}}.encode()}}
		found, sequence, err := commanded(r).SetOptOut(t.Context(), e, true)
		assert.True(t, found && sequence == 2 && err == nil, "found %t, sequence %d, %v", found, sequence, err)
	})
}

// TestErasureWithoutAnswer: an erasure is added once, also if the answer was lost.
func TestErasureWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &keptRegister{[][]byte{Desired{Version: desiredVersion}.encode()}}
		x := Erasure{Name: "a.example", At: time.Now()}
		number, err := newDesired(r, slog.New(slog.DiscardHandler)).addErasure(t.Context(), 2, x, time.Second)
		d, decodeErr := decodeDesired(r.values[len(r.values)-1])
		assert.True(t, number == 1 && len(d.Erasures) == 1 && errors.Join(err, decodeErr) == nil,
			"number %d of %+v, %v, %v", number, d.Erasures, err, decodeErr)
	})
}

// TestCommandWithoutAnswer: the error of a command says once that there is no answer.
func TestCommandWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &silentRegister{keptRegister{[][]byte{Desired{Version: desiredVersion}.encode()}}}
		_, err := commanded(r).SetPaused(t.Context(), true)
		assert.True(t, errors.Is(err, storage.ErrLogDown) &&
			strings.Count(err.Error(), context.DeadlineExceeded.Error()) == 1, "%v", err)
	})
}
