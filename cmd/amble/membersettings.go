//go:build !core

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// nodeSettings are the settings of a node of a cluster: some are those of all nodes, which a command changes for all.
// Its methods may be called concurrently.
type nodeSettings struct {
	*liveSettings
	// publish replaces the patch of all nodes by what next makes of it. With reload all nodes read their files again.
	publish func(ctx context.Context, reload bool, next func(patch []byte) ([]byte, error)) error
	shared  map[string]any // by their keys: what is in force in place of the file; guarded by mu
}

// Change implements server.Settings.
func (n *nodeSettings) Change(ctx context.Context, patch []byte) ([]string, error) {
	var changed map[string]any
	if err := json.Unmarshal(patch, &changed); err != nil {
		return nil, server.Rejected{{Message: err.Error()}}
	}
	done, err := n.changeAll(ctx, false, func(before map[string]any) map[string]any { return merged(before, changed) })
	return done.Changed, err
}

// Reload implements server.Settings. The seeds are those of the file of this node.
func (n *nodeSettings) Reload(ctx context.Context, undo bool) (server.SettingsChange, error) {
	done, err := n.changeAll(ctx, true, func(before map[string]any) map[string]any {
		if undo {
			return nil
		}
		return before
	})
	if err == nil {
		err = n.reloadSeeds(ctx, &done)
	}
	return done, err
}

// changeAll changes the settings of all nodes of a cluster. This node only looks whether it can follow.
func (n *nodeSettings) changeAll(
	ctx context.Context, reload bool, change func(patch map[string]any) map[string]any,
) (done server.SettingsChange, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err = n.publish(ctx, reload, func(encoded []byte) ([]byte, error) {
		var before map[string]any
		if err := json.Unmarshal(encoded, &before); len(encoded) > 0 && err != nil {
			return nil, err
		}
		patch := change(before)
		inForce := patch
		if !reload { // else those of the file of this node are the cluster's
			inForce = merged(config.PatchOfKeys(n.shared), patch)
		}
		fresh, err := n.check(inForce)
		if err != nil {
			return nil, err
		}
		done.Kept = config.PatchKeys(patch)
		if done.Changed = n.current.Changes(fresh); len(patch) == 0 {
			return nil, nil
		}
		return json.Marshal(patch)
	})
	return done, err
}

// Apply implements shards.Settings.
func (n *nodeSettings) Apply(ctx context.Context, shared map[string]any, encoded []byte) error {
	var patch map[string]any
	if err := json.Unmarshal(encoded, &patch); len(encoded) > 0 && err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := n.replace(ctx, merged(config.PatchOfKeys(shared), patch))
	if err == nil {
		n.shared = shared
	}
	return err
}

// Shared implements shards.Settings.
func (n *nodeSettings) Shared() map[string]any {
	fresh, err := n.load(nil)
	if err != nil {
		return nil
	}
	return fresh.Shared()
}

// mayChange refuses settings that all nodes have to agree on.
func (m *member) mayChange(fresh *config.Config) error {
	var problems server.Rejected
	before, after := m.config.Agreed(), fresh.Agreed()
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if after[key] != before[key] {
			problems = append(problems, server.RejectedSetting{Key: key, Message: "cannot change while a cluster " +
				"runs, because all nodes have to agree on it: stop all nodes for that"})
		}
	}
	if problems == nil {
		return nil
	}
	return problems
}

// agree puts the seeds, the politeness and the identity of the cluster in force, and says where the file of this node
// differs.
func (m *member) agree(ctx context.Context) error {
	for {
		followed, err := m.node.Agree(ctx)
		switch {
		case err == nil && len(followed) > 0:
			m.notice("warning", "the settings of the cluster are in force, not those of this file: "+
				strings.Join(followed, ", ")+
				"; amble control reload makes those of the file of its node the cluster's")
			return nil
		case err == nil:
			return nil
		case !errors.Is(err, storage.ErrLogDown) && !errors.Is(err, natsconn.ErrDown):
			return console.Exit(console.ExitRefused, err)
		}
		select {
		case <-ctx.Done():
			return console.Exit(console.ExitProblem, fmt.Errorf("stopped before the cluster could be joined: %w", err))
		case <-time.After(openAgain):
		}
	}
}
