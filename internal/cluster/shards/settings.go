//go:build !core

package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Settings are those of the process of a node. Its methods may be called concurrently.
type Settings interface {
	// Apply reads the config file of this process again, with values by their keys and with a patch, and puts the
	// settings in force with Node.Change. The error says what is wrong with them; then nothing has changed.
	Apply(ctx context.Context, shared map[string]any, patch []byte) error
	// Shared reads the config file of this process again, and returns the settings that all nodes have in common, by
	// their keys. nil: it cannot be read.
	Shared() map[string]any
}

// Agree puts the seeds, the politeness and the identity of the cluster in force before this node owns a shard; the
// first node that calls it says what they are. It returns the keys of the settings in which this node differs and
// follows. The error is membership.ErrSettings if it cannot follow, or storage.ErrLogDown.
func (n *Node) Agree(ctx context.Context) (followed []string, err error) {
	e := n.engines
	differs, err := n.publishSeeds(ctx)
	if err != nil {
		return nil, err
	}
	var own map[string]any
	if e.o.Settings != nil {
		own = e.o.Settings.Shared()
	}
	_, err = n.command(ctx, func(d *Desired) error {
		if d.Seeded && (d.Shared != nil || own == nil) {
			return errUnchanged
		}
		if d.Seeded = true; d.Shared == nil {
			d.Shared = own
		}
		return nil
	})
	if err != nil || e.o.Settings == nil {
		return nil, err
	}
	now, _, _ := e.desired.latest()
	followed = different(now.Shared, own)
	if len(followed) > 0 || len(now.Settings) > 0 {
		if err := e.o.Settings.Apply(ctx, now.Shared, now.Settings); err != nil {
			return nil, fmt.Errorf("cluster %s has %w: %w; use the same settings on all nodes", e.o.Names.Cluster,
				membership.ErrSettings, err)
		}
	}
	if differs {
		followed = append(followed, "crawl.seeds")
	}
	text := ""
	if len(followed) > 0 {
		text = "its file has other settings than the cluster, which are not in force: " + strings.Join(followed, ", ")
	}
	n.member.Note("settings", text)
	return followed, nil
}

// publishSeeds makes the seeds of this node those of the cluster, unless a node has done that: then differs says
// whether they are others. What was said of a URL before stays. If it ends in the middle, another call goes on with it.
func (n *Node) publishSeeds(ctx context.Context) (differs bool, err error) {
	e := n.engines
	if err := errors.Join(e.desired.read(ctx), e.streams.AllSeeds(ctx, e.scope.take)); err != nil {
		return false, err
	}
	if now, _, _ := e.desired.latest(); now.Seeded {
		return len(e.o.Seeds) > 0 && e.scope.differs(e.o.Seeds), nil
	}
	return false, e.scope.publish(ctx, e.scope.unknown(e.o.Seeds))
}

// different returns the keys of values that others have too and that differ.
func different(values, others map[string]any) (keys []string) {
	for key, value := range values {
		if other, known := others[key]; known && !sameJSON(value, other) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func sameJSON(a, b any) bool {
	first, err := json.Marshal(a)
	second, again := json.Marshal(b)
	return err == nil && again == nil && bytes.Equal(first, second)
}

// SetSettings replaces the patch of the settings of all nodes by what next makes of it, and with reload has
// all nodes read their config files again; what they have in common is then that of the file of this one. Else it is
// as SetPaused; an error of next comes through.
func (n *Node) SetSettings(ctx context.Context, reload bool, next func(patch []byte) ([]byte, error)) (sequence uint64,
	err error) {
	return n.command(ctx, func(d *Desired) error {
		patch, err := next(d.Settings)
		if err != nil {
			return err
		}
		if bytes.Equal(patch, d.Settings) && !reload {
			return errUnchanged
		}
		d.Settings = patch
		if reload {
			d.Reloads, d.Shared = d.Reloads+1, n.engines.o.Settings.Shared()
		}
		return nil
	})
}

// adopt puts the settings of the cluster in force.
func (e *engines) adopt(ctx context.Context, shared map[string]any, patch []byte) error {
	if e.o.Settings == nil {
		return errNoSettings
	}
	err := e.o.Settings.Apply(ctx, shared, patch)
	if err != nil {
		err = fmt.Errorf("the settings that the cluster has now are not in force on this node: %w", err)
		e.log.Error(err.Error())
	}
	return err
}

// Change puts live options in force, for the engines that are open and for those that will be. The error says
// what is wrong with the options: it returns before the engines have them.
func (n *Node) Change(_ context.Context, l crawl.Live) error {
	e := n.engines
	changed := *e.o
	changed.Crawl = e.o.Crawl.With(l)
	if err := changed.Validate(); err != nil {
		return err
	}
	e.shared.Change(l)
	e.desired.aim(func(t *target) { t.live, t.refused = &l, nil })
	return nil
}
