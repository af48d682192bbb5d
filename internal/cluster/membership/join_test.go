package membership

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestRefusals: a process that cannot be a node of the cluster is told why.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a := w.start("a")
	w.served("after the start", a)

	join := func(alter func(o *Options)) error {
		t.Helper()
		p, js := w.connect("b")
		defer p.nc.Close()
		o := w.options("b")
		alter(&o)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		n, err := Join(ctx, p.nc, js, o)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err = n.Run(ctx)
		}
		return err
	}
	for name, tt := range map[string]struct {
		alter func(o *Options)
		want  []string
	}{
		"a name that is taken": {func(o *Options) { o.Cluster.Node = "a" },
			[]string{"cluster web, node a", ErrNameTaken.Error(), "cluster.node"}},
		"other settings": {func(o *Options) {
			o.Cluster.Shards, o.Settings = 32, map[string]string{"traps": "off"}
			o.Cluster.TTL = 3 * time.Second
		}, []string{"cluster.shards is 24 there and 32 here", "cluster.ttl is 2s there and 3s here",
			"traps is not set there and off here", "another cluster.name"}},
		"other copies": {func(o *Options) { o.Replicas, o.Cluster.Shards = 3, 32 },
			[]string{"cluster.replicas) is 1, not 3", "cluster.shards is 24 there and 32 here"}},
		"no name":    {func(o *Options) { o.Cluster.Node = "" }, []string{"cluster.node: the name is empty"}},
		"a bad name": {func(o *Options) { o.Cluster.Node = "a.b" }, []string{"cluster.node", "only letters"}},
		"two copies": {func(o *Options) { o.Replicas = 2 }, []string{"cluster.replicas is 2"}},
		"a long value": {func(o *Options) { o.Settings = map[string]string{"a": strings.Repeat("x", 1<<20)} },
			[]string{"its hash"}},
		"a short TTL": {func(o *Options) { o.Cluster.Heartbeat = time.Second }, []string{"lost heartbeat"}},
		"too many":    {func(o *Options) { o.Cluster.Shards = 1 << 30 }, []string{"cluster.shards"}},
		"no state file": {func(o *Options) { o.StateFile = "/nowhere/state" },
			[]string{"state of the node", "no such file"}},
	} {
		err := join(tt.alter)
		for _, want := range tt.want {
			assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v, want %q", name, err, want)
		}
	}
	assert.Equal(t, len(a.engines.owned()), 24, "the other node has lost shards by that")

	// A cluster of another version: the first byte of its settings is another.
	p, js := w.connect("c")
	defer p.nc.Close()
	must.Get(js.Publish(patient(t), names.Subject("settings"), []byte{protocol + 1}))(t)
	err := join(func(*Options) {})
	assert.True(t, errors.Is(err, errProtocol) && strings.Contains(err.Error(), "the same version"),
		"another version: %v", err)
}

// TestOlderSettings: the settings of a version that had several in one are replaced by the first node of this one.
func TestOlderSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p, js := w.connect("a")
	defer p.nc.Close()
	must.Get(js.CreateStream(patient(t), names.StreamConfig(1)))(t)
	older := []setting{{"scope.mode", "any"}, {"the rules of URLs", "0123456789abcdef"}}
	must.Get(js.Publish(patient(t), names.Subject("settings"), encodeSettings(writer{}, older)))(t)
	a := w.start("a")
	w.served("after the start", a)
	m, _, err := a.node.reg.read(patient(t), names.Subject("settings"))
	must.Do(t, err)
	o := w.options("a")
	if now, err := decodeSettings(m.data); err != nil || !slices.Equal(now, o.settings()) {
		t.Errorf("the register has %v: %v", now, err)
	}
}

// TestForeignStream: a stream that loses messages is refused, with all that is wrong.
func TestForeignStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p, js := w.connect("a")
	defer p.nc.Close()
	c := names.StreamConfig(1)
	c.AllowRollup, c.MaxAge = false, time.Hour
	must.Get(js.CreateStream(patient(t), c))(t)
	_, err := Join(patient(t), p.nc, js, w.options("a"))
	for _, want := range []string{"allow_rollup_hdrs is false", "max_age is 1h"} {
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
}

// TestLostAnswer: a heartbeat without an answer counts when the node sees it in its register.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.alter = neverLate
	p, js := w.connect("a")
	defer p.nc.Close()
	n := must.Get(Join(patient(t), p.nc, js, w.options("a")))(t)
	machine := must.Get(cluster.NewNode(n.now(), n.o.Cluster))(t)
	n.machine = machine
	n.do(func(m *cluster.Node, now cluster.Instant) { m.Tick(now) })
	k := n.actions[0].(cluster.WriteKey)
	subject := n.writes.member("a")
	seq, result, err := n.reg.write(patient(t), subject, encodeKey(n.writes.writer(k.ID), k.Key), 0, true)
	must.True(t, result == written && n.Trust().Left() <= 0, "%v, %v", result, err)
	n.writes.read(patient(t), subject)
	if left := n.Trust().Left(); !n.Status().Joined || left <= 0 || left > n.o.Cluster.TTL-n.o.Cluster.Margin {
		t.Errorf("trust %v, %+v", left, n.Status())
	}
	// A write on the condition that nothing was written is refused, and leaves nothing.
	if _, result, err := n.reg.write(patient(t), subject, []byte("x"), 0, true); result != refused {
		t.Errorf("%v, %v", result, err)
	}
	// A write replaces the one before, so that heartbeats take no room.
	if _, result, err := n.reg.write(patient(t), subject, []byte("x"), seq, true); result != written {
		t.Errorf("%v, %v", result, err)
	}
	info, err := n.reg.stream.Info(patient(t), jetstream.WithSubjectFilter(subject))
	assert.True(t, err == nil && info.State.Subjects[subject] == 1, "%+v, %v", info, err)
	must.Get(n.Replicas(patient(t)))(t)
}

// TestRestart: a process that has the state file of its predecessor need not wait for a TTL, unless
// that runs, or the file is a copy.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	state := filepath.Join(t.TempDir(), "state")
	w.alter = func(o *Options) { neverLate(o); o.StateFile = state }
	a := w.start("a")
	w.served("after the start", a)
	testkit.Eventually(t, "the membership is noted", func() error {
		if b, err := os.ReadFile(state); err != nil || len(b) == 0 {
			return errNotYet
		}
		return nil
	})
	if _, err := openState(state); err == nil || !errors.Is(err, ErrInUse) {
		t.Errorf("the state of a process that runs: %v", err)
	}
	a.kill()
	copied := state + ".copy"
	b, err := os.ReadFile(state)
	if err == nil {
		err = os.WriteFile(copied, b, 0o600)
	}
	must.Do(t, err)
	s, err := openState(copied)
	assert.True(t, err == nil && s.predecessor == 0, "a copy: %+v, %v", s, err)
	s.close()
	a = w.start("a")
	w.served("after a restart", a) // patience is less than the TTL
	a.leave()
}
