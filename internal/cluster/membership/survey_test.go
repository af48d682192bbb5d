package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestSurvey: who reads the registers sees the nodes and who owns what; a command drains a node and makes
// it take shards again; and a node that has left is not seen any more.
func TestSurvey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p, js := w.connect("nobody")
	t.Cleanup(p.nc.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	assert.Fails(ReadSurvey(ctx, js, names))(t, ErrNoCluster, "before the first node")
	a, b := w.start("a"), w.start("b")
	w.served("both", a, b)
	w.surveyed(js, "both", func(s *Survey) bool {
		return len(s.Members) == 2 && s.Members[0].Node == "a" && s.Members[0].State == Trusted &&
			s.Members[0].Owns > 0 && s.Members[1].Owns > 0 && s.agrees()
	})
	for _, order := range []Order{Drain, Undrain} {
		drain := order == Drain
		must.Do(t, Command(ctx, p.nc, names, "a", order))
		if drain {
			w.served("b has all", b)
		} else {
			w.served("both again", a, b)
		}
		w.surveyed(js, "the command", func(s *Survey) bool {
			return s.agrees() && len(s.Members) == 2 && drain == (s.Members[0].State == Drained) &&
				drain == (s.Members[0].Owns == 0)
		})
	}
	b.leave()
	w.served("a has all", a)
	w.surveyed(js, "b has left", func(s *Survey) bool { return s.agrees() && len(s.Members) == 1 })
	assert.Is(t, Command(ctx, p.nc, names, "b", Drain), ErrNoNode, "a command to a node that has left")
	a.kill()
	w.surveyed(js, "a is dead", func(s *Survey) bool {
		return len(s.Members) == 1 && s.Members[0].State == Dead && s.Shards[0].Node == "a" && s.Shards[0].Goal == ""
	})
}

// agrees reports whether each shard belongs to the node that should own it.
func (s *Survey) agrees() bool {
	for _, shard := range s.Shards {
		if shard.Node == "" || shard.Node != shard.Goal || shard.Since.IsZero() {
			return false
		}
	}
	return len(s.Shards) == shortOptions("x").Shards
}

// surveyed waits until the registers say something.
func (w *world) surveyed(js jetstream.JetStream, what string, holds func(s *Survey) bool) {
	w.t.Helper()
	testkit.Eventually(w.t, what, func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		s, err := ReadSurvey(ctx, js, names)
		if err == nil && !holds(s) {
			err = errNotYet
		}
		return err
	})
}

// TestEnded: an error of a step that a context has ended says that once, and what was wrong before.
func TestEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for text, errs := range map[string][]error{
		"context deadline exceeded":                  {ctx.Err(), fmt.Errorf("%w", ctx.Err())},
		"no leader; context deadline exceeded":       {errors.New("no leader"), nil},
		"publish: context deadline exceeded":         {fmt.Errorf("publish: %w", ctx.Err()), nil},
		"no leader; read: context deadline exceeded": {errors.New("no leader"), fmt.Errorf("read: %w", ctx.Err())},
	} {
		err := ended(ctx, errs...)
		want := natsconn.ErrDown.Error() + ": " + text
		assert.True(t, err.Error() == want && errors.Is(err, natsconn.ErrDown), "%q, not %q", err, want)
	}
}

// TestSurveyOfNonsense: settings that cannot be read are an error. A register of a node or a shard that cannot be
// read costs its row, and no other.
func TestSurveyOfNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p, js := w.connect("nobody")
	t.Cleanup(p.nc.Close)
	must.Get(natsconn.OpenStream(patient(t), js, names, 1))(t)
	publish := func(subject string, data []byte) {
		_, _ = js.Publish(patient(t), names.Subject(subject), data) // one of them belongs to no stream
	}
	publish("settings", encodeSettings(writer{}, []setting{{"cluster.shards", "1000000000"}}))
	assert.Fails(ReadSurvey(patient(t), js, names))(t, nil)
	publish("settings", encodeSettings(writer{}, []setting{{"cluster.margin", "1s"}, {"cluster.shards", "8"},
		{"cluster.ttl", "1h"}}))
	publish("member.a", []byte{9, 9})
	publish("member.b", encodeKey(writer{}, cluster.Key{Process: 7, Weight: 1}))
	publish("epoch.7", []byte{1})
	publish("epoch.-1", encodeEpoch(writer{}, goldenEpoch))
	publish("epoch.9.9", encodeEpoch(writer{}, goldenEpoch))
	publish("epoch.2", encodeEpoch(writer{}, cluster.Epoch{Owner: cluster.Member{Node: "b", Incarnation: 3}}))
	s, err := ReadSurvey(patient(t), js, names)
	assert.True(t, err == nil && len(s.Members) == 2 && s.Members[0].State == Unreadable &&
		len(s.Members[0].Notes) == 1 && s.Members[1].State == Trusted && s.Members[1].Owns == 1 &&
		s.Shards[7].Node == UnknownOwner && s.Shards[2].Node == "b" && s.Shards[3].Node == "", "%+v, %v", s, err)
}

// TestUnreadable: somebody writes to the register of a node what nobody can read. Another node takes its shards
// after a TTL, the node says so in the registers and takes its share again.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p, js := w.connect("nobody")
	t.Cleanup(p.nc.Close)
	a, b := w.start("a"), w.start("b")
	w.served("both", a, b)
	must.Get(js.Publish(patient(t), names.Subject("member", "a"), []byte("nonsense")))(t)
	w.surveyed(js, "a is unreadable", func(s *Survey) bool {
		return len(s.Members) == 2 && s.Members[0].State == Unreadable && s.Members[1].State == Trusted
	})
	testkit.Eventually(t, "a has nothing", func() error {
		if owned := a.engines.owned(); len(owned) > 0 {
			return fmt.Errorf("it has %v", owned)
		}
		return nil
	})
	w.served("both again", a, b)
	a.node.Note("test", "one\ntwo")
	a.node.Suspend("no room")
	w.served("b has all", b)
	w.surveyed(js, "a says why", func(s *Survey) bool {
		return s.agrees() && s.Members[0].State == Drained &&
			slices.Equal(s.Members[0].Notes, []string{"one two", "no room"})
	})
	a.node.Drain()
	a.node.Resume()
	assert.True(t, a.node.Status().Drained, "the end of a suspension undoes a command")
	a.node.Suspend("no room")
	a.node.Undrain()
	w.served("both at last", a, b)
	w.surveyed(js, "a has its share", func(s *Survey) bool {
		return s.agrees() && s.Members[0].State == Trusted && len(s.Members[0].Notes) == 1
	})
}
