package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/server"
)

// liveSettings are the settings of the crawl of this process, which may change while it runs. Its methods may be called concurrently.
type liveSettings struct {
	load  func(patch []byte) (*config.Config, error)
	apply func(context.Context, crawl.Live) error
	level *slog.LevelVar
	log   *slog.Logger

	tokens func(full, read string) // puts others in force; nil: there is no API

	mu      sync.Mutex // held while settings change, so that one change follows the other
	current *config.Config
	patch   map[string]any // what was changed over the API, merged
}

// useTokens sets who is told of other tokens.
func (l *liveSettings) useTokens(set func(full, read string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = set
}

// Settings is part of server.Settings.
func (l *liveSettings) Settings() []server.Setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []server.Setting
	for _, e := range l.current.Entries() {
		list = append(list, server.Setting{Key: e.Key, Value: e.Value, Source: e.Source, Live: e.Live})
	}
	return list
}

// Change is part of server.Settings.
func (l *liveSettings) Change(ctx context.Context, patch []byte) ([]string, error) {
	var given map[string]any
	if err := json.Unmarshal(patch, &given); err != nil {
		return nil, server.Rejected{{Message: err.Error()}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replace(ctx, merged(l.patch, given))
}

// Reload is part of server.Settings.
func (l *liveSettings) Reload(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replace(ctx, nil)
}

// replace loads the settings again, with a patch, and puts in force what is different.
func (l *liveSettings) replace(ctx context.Context, patch map[string]any) ([]string, error) {
	var encoded []byte
	if len(patch) > 0 {
		var err error
		if encoded, err = json.Marshal(patch); err != nil {
			return nil, err
		}
	}
	fresh, err := l.load(encoded)
	if err != nil {
		return nil, rejected(withFixed(err, l.current.FixedIn(encoded)))
	}
	changes := l.current.Changes(fresh)
	if fixed := l.current.Fixed(fresh); len(fixed) > 0 {
		return nil, rejected(fixed)
	}
	options, err := fresh.CrawlOptions(programVersion())
	if err != nil {
		return nil, rejected(err)
	}
	if err := l.apply(ctx, options.Live()); err != nil {
		return nil, err
	}
	l.level.Set(levelOf(fresh.Log))
	if l.tokens != nil {
		l.tokens(fresh.Server.Token, fresh.Server.ReadToken)
	}
	l.current, l.patch = fresh, patch
	if len(changes) > 0 {
		l.log.Warn("settings have changed", "keys", strings.Join(changes, " "))
	}
	return changes, nil
}

// withFixed adds settings that cannot change to the problems of a load, which have to come to an end before those are known.
func withFixed(err error, fixed config.Errors) error {
	var problems config.Errors
	if !errors.As(err, &problems) {
		return err
	}
	for _, p := range fixed {
		if !slices.ContainsFunc(problems, func(q config.Problem) bool { return q.Key == p.Key }) {
			problems = append(problems, p)
		}
	}
	return problems
}

// rejected names each problem of settings by its key.
func rejected(err error) error {
	var problems config.Errors
	if !errors.As(err, &problems) {
		return server.Rejected{{Message: err.Error()}}
	}
	var list server.Rejected
	for _, p := range problems {
		key := p.Key
		p.Key = ""
		list = append(list, server.RejectedSetting{Key: key, Message: p.String()})
	}
	return list
}

// merged applies a JSON merge patch (RFC 7396) to another one.
func merged(to, patch map[string]any) map[string]any {
	result := make(map[string]any)
	for key, value := range to {
		result[key] = value
	}
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(result, key)
		case isObject:
			before, _ := result[key].(map[string]any)
			result[key] = merged(before, inner)
		default:
			result[key] = value
		}
	}
	return result
}

// reloadOnHangup reads the config file again at each SIGHUP, until stop.
func (l *liveSettings) reloadOnHangup(ctx context.Context) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
				l.reload(ctx)
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
	}
}

func (l *liveSettings) reload(ctx context.Context) {
	changes, err := l.Reload(ctx)
	var problems server.Rejected
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			l.log.Error("the settings cannot take effect, those before stay", "key", p.Key, "problem", p.Message)
		}
	case err != nil:
		l.log.Error("the settings cannot take effect, those before stay", "error", fmt.Errorf("reload: %w", err))
	case len(changes) == 0:
		l.log.Warn("the settings were read again: nothing is different")
	}
}
