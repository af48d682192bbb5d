//go:build !core

package main

import (
	"context"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/modules/oncomplete"
	outputs "github.com/amble-crawler/amble/internal/output/formats"
)

// onCompleteModule runs output.on_complete. trouble says which file the command does not take.
func onCompleteModule() (m module, trouble func() (string, bool)) {
	var r *oncomplete.Runner // nil: there is no command
	m.serve = func(ctx context.Context, k *crawling, _ *node.Node) (context.Context, func(), error) {
		c := k.config
		if c.Output.OnComplete == "" {
			return ctx, func() {}, nil
		}
		output := c.OutputDir()
		if c.InCluster() {
			output = ""
		}
		made, err := oncomplete.New(oncomplete.Options{
			Command: c.Output.OnComplete, Timeout: c.Output.OnCompleteTimeout,
			Dirs:    func() []string { return oncomplete.Dirs(c.DataDir, output) },
			Formats: outputs.All(), Journal: filepath.Join(c.DataDir, oncomplete.JournalFile), Log: k.log,
		})
		if err != nil {
			return nil, nil, err
		}
		r = made
		return ctx, r.Start(), nil
	}
	m.closed = func(ctx context.Context, stopped bool) error {
		if r == nil {
			return nil
		}
		return r.End(ctx, stopped)
	}
	return m, func() (string, bool) {
		if r == nil {
			return "", false
		}
		return r.Trouble()
	}
}
