//go:build core

package crawl

import (
	"context"
	"log/slog"
)

// Journal has nothing but its hosts: this program crawls on one machine, without a log before the database.
type Journal interface{ Owns(host string) bool }

func openLogged(s store, _ *Options) (store, error) { return s, nil }

func protect(_ *Options, _ *slog.Logger, f func() error) error { return f() }

// incoming has no other shards to read from.
type incoming struct{}

func (*incoming) run(context.Context) {}

func (*Engine) newIncoming(*mailbox) (*incoming, error) { return nil, nil }
