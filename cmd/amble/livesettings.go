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
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
)

// liveSettings are the settings of the running crawl of this process. Its methods may be called
// concurrently.
type liveSettings struct {
	load  func(patch []byte) (*config.Config, error)
	apply func(context.Context, crawl.Live) error
	level *slog.LevelVar
	log   *slog.Logger

	mayChange   func(*config.Config) error                                      // nil: whatever can change
	changeSeeds func(context.Context, crawl.SeedWish) (crawl.SeedCounts, error) // those of the whole crawl

	tokens func(full, read, fetch string) // sets the API's tokens; nil: there is no API
	// setToken sets the token of the URLFrontier service; nil: there is none
	setToken func(string)

	mu      sync.Mutex // held during a change, so that changes are serial
	current *config.Config
	patch   map[string]any // the changes made over the API, merged
}

// useTokens sets the function that receives changed tokens.
func (l *liveSettings) useTokens(set func(full, read, fetch string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = set
}

// Settings implements server.Settings.
func (l *liveSettings) Settings() []server.Setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []server.Setting
	for _, e := range l.current.Entries() {
		list = append(list, server.Setting{Key: e.Key, Value: e.Value, Source: e.Source, Live: e.Live})
	}
	return list
}

// Change implements server.Settings.
func (l *liveSettings) Change(ctx context.Context, patch []byte) ([]string, error) {
	var changed map[string]any
	if err := json.Unmarshal(patch, &changed); err != nil {
		return nil, server.Rejected{{Message: err.Error()}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replace(ctx, merged(l.patch, changed))
}

// Reload implements server.Settings.
func (l *liveSettings) Reload(ctx context.Context, undo bool) (server.SettingsChange, error) {
	done, err := l.reread(ctx, undo)
	if err == nil {
		err = l.reloadSeeds(ctx, &done)
	}
	return done, err
}

// reread reads the config file of this process again.
func (l *liveSettings) reread(ctx context.Context, undo bool) (done server.SettingsChange, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	patch := l.patch
	if undo {
		patch = nil
	}
	done.Kept = config.PatchKeys(patch)
	done.Changed, err = l.replace(ctx, patch)
	return done, err
}

// reloadSeeds reads the seeds of the settings again. As at a start, settings without a seed or with a bad one remove
// none: somebody may be writing the file.
func (l *liveSettings) reloadSeeds(ctx context.Context, done *server.SettingsChange) error {
	fresh, err := l.load(nil)
	if err != nil {
		return rejected(err)
	}
	var w crawl.SeedWish
	config.VisitSeeds(fresh, nil, func(s crawl.Seed) { w.Add = append(w.Add, s) },
		func(b config.BadSeed) { done.BadSeeds = append(done.BadSeeds, b.String()) })
	w.Settings = len(w.Add) > 0 && len(done.BadSeeds) == 0
	counts, err := l.changeSeeds(ctx, w)
	if err != nil {
		return fmt.Errorf("the settings are read again, and not all seeds: %w", err)
	}
	done.Seeds = &counts
	return nil
}

// check loads the settings again, with a patch.
func (l *liveSettings) check(patch map[string]any) (fresh *config.Config, err error) {
	var encoded []byte
	if len(patch) > 0 {
		if encoded, err = json.Marshal(patch); err != nil {
			return nil, err
		}
	}
	if fresh, err = l.load(encoded); err != nil {
		return nil, rejected(withFixed(err, l.current.FixedIn(encoded)))
	}
	if fixed := l.current.Fixed(fresh); len(fixed) > 0 {
		return nil, rejected(fixed)
	}
	if l.mayChange != nil {
		err = l.mayChange(fresh)
	}
	return fresh, err
}

// replace loads the settings again, with a patch, and applies the differences.
func (l *liveSettings) replace(ctx context.Context, patch map[string]any) ([]string, error) {
	fresh, err := l.check(patch)
	if err != nil {
		return nil, err
	}
	changes := l.current.Changes(fresh)
	options, err := fresh.CrawlOptions(programVersion())
	if err != nil {
		return nil, rejected(err)
	}
	if err := l.apply(ctx, options.Live()); err != nil {
		return nil, err
	}
	l.level.Set(console.LevelOf(fresh.Log))
	if l.tokens != nil {
		l.tokens(fresh.Server.Token, fresh.Server.ReadToken, fresh.Server.FetchToken)
	}
	if l.setToken != nil {
		l.setToken(fresh.URLFrontier.Token)
	}
	l.current, l.patch = fresh, patch
	if len(changes) > 0 {
		l.log.Warn("settings have changed", "keys", strings.Join(changes, " "))
	}
	return changes, nil
}

// withFixed adds the fixed settings to the problems of a load. The load fails before they are
// known.
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

// rejected lists each problem by the key of its setting.
func rejected(err error) error {
	var problems config.Errors
	if !errors.As(err, &problems) {
		return server.Rejected{{Message: err.Error()}}
	}
	var list server.Rejected
	for _, p := range problems {
		key := p.Key
		p.Key = ""
		text := strings.TrimPrefix(p.String(), config.PatchName+": ")
		list = append(list, server.RejectedSetting{Key: key, Message: text})
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

// reloadOnHangup calls reload at each SIGHUP and logs what has changed, until stop is called.
func (l *liveSettings) reloadOnHangup(
	ctx context.Context, reload func(ctx context.Context, undo bool) (server.SettingsChange, error),
) (stop func()) {
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
				l.logReload(reload(ctx, false))
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
	}
}

func (l *liveSettings) logReload(done server.SettingsChange, err error) {
	for _, b := range done.BadSeeds {
		l.log.Warn("bad seed", "seed", b)
	}
	var problems server.Rejected
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			l.log.Error("the settings are not applied, the previous ones stay in force", "key", p.Key, "problem",
				p.Message)
		}
	case err != nil:
		l.log.Error("the settings are not applied, the previous ones stay in force", "error",
			fmt.Errorf("reload: %w", err))
	default:
		for _, line := range access.ReloadText(&done) {
			l.log.Warn("settings reloaded: " + line)
		}
	}
}
