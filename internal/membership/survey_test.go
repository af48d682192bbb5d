package membership

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/natsconn"
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
	if _, err := ReadSurvey(ctx, js, names); !errors.Is(err, ErrNoCluster) {
		t.Errorf("before the first node: %v", err)
	}
	a, b := w.start("a"), w.start("b")
	w.served("both", a, b)
	w.surveyed(js, "both", func(s *Survey) bool {
		return len(s.Members) == 2 && s.Members[0].Node == "a" && s.Members[0].State == Trusted &&
			s.Members[0].Owns > 0 && s.Members[1].Owns > 0 && s.agrees()
	})
	for _, drain := range []bool{true, false} {
		if err := Command(ctx, p.nc, names, "a", drain); err != nil {
			t.Fatal(err)
		}
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
	if err := Command(ctx, p.nc, names, "b", true); !errors.Is(err, ErrNoNode) {
		t.Errorf("a command to a node that has left: %v", err)
	}
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
	eventually(w.t, what, func() error {
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
		if want := natsconn.ErrDown.Error() + ": " + text; err.Error() != want || !errors.Is(err, natsconn.ErrDown) {
			t.Errorf("%q, not %q", err, want)
		}
	}
}

// TestSurveyOfNonsense: registers that cannot be read are an error, and are not left out.
func TestSurveyOfNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p, js := w.connect("nobody")
	t.Cleanup(p.nc.Close)
	if _, err := natsconn.OpenStream(t.Context(), js, names, 1); err != nil {
		t.Fatal(err)
	}
	for subject, data := range map[string][]byte{
		"settings":  encodeSettings(writer{}, []setting{{"cluster.shards", "1000000000"}}),
		"member.a":  {9, 9},
		"epoch.7":   {1},
		"epoch.-1":  encodeEpoch(writer{}, goldenEpoch),
		"epoch.9.9": encodeEpoch(writer{}, goldenEpoch),
	} {
		_, _ = js.Publish(t.Context(), names.Subject(subject), data) // the last one belongs to no stream
	}
	if s, err := ReadSurvey(t.Context(), js, names); err == nil {
		t.Errorf("%+v", s)
	}
	settings := encodeSettings(writer{}, []setting{{"cluster.margin", "1s"}, {"cluster.shards", "8"}, {"cluster.ttl", "9s"}})
	if _, err := js.Publish(t.Context(), names.Subject("settings"), settings); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadSurvey(t.Context(), js, names); err == nil {
		t.Errorf("%+v", s)
	}
}
