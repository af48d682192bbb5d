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

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
)

func newConfigCommand(settings *settingsFlags) *cobra.Command {
	return group("config", "Check and show the settings",
		"Check the settings, or show the settings in force and the source of each.",
		newConfigCheckCommand(settings),
		newConfigShowCommand(settings),
	)
}

func newConfigCheckCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Report all problems of the settings and the seeds",
		Long: `Report all problems of the settings and the seeds, one a line, with the file and line, the
value read and the values allowed. Nothing is fetched and no database is opened.

Exit code 0: no problems. 2: there are problems.`,
		Example: `  amble config check
  amble config check -c /etc/amble/config.yaml
  AMBLE_POLITENESS_DELAY=fast amble config check`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return checkSettings(command, c)
		},
	}
}

// checkSettings reports on settings that were loaded: bad seeds, and warnings.
func checkSettings(command *cobra.Command, c *config.Config) error {
	if _, err := c.OptOuts(); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	good, bad := 0, 0
	config.VisitSeeds(c, nil, func(crawl.Seed) { good++ }, func(b config.BadSeed) {
		bad++
		command.PrintErrln("amble:", b)
	})
	for _, w := range c.Warnings() {
		command.PrintErrln("warning:", w)
	}
	if bad > 0 {
		return console.Exit(console.ExitUsage,
			fmt.Errorf("%d bad and %d good seeds; a crawl would use the good ones", bad, good))
	}
	name := c.File()
	if name == "" {
		name = "no config file, defaults"
	}
	_, err := fmt.Fprintf(command.OutOrStdout(), "%s: no problems, %d seeds\n", name, good)
	return err
}

func newConfigShowCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the settings in force and the source of each",
		Long: `Print the settings in force as a config file, with the source of each after it: the default, a
line of the file, an environment variable, or --set. Secrets are not printed.`,
		Example: `  amble config show
  amble config show --set politeness.delay=2s | grep -v default`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return c.Show(command.OutOrStdout())
		},
	}
}

// liveSettings are the settings of the running crawl of this process. Its methods may be called
// concurrently.
type liveSettings struct {
	load  func(patch []byte) (*config.Config, error)
	apply func(context.Context, crawl.Live) error
	level *slog.LevelVar
	log   *slog.Logger

	// publish replaces the patch of all nodes of a cluster by what next makes of it; nil: there is one machine.
	// With reload all nodes read their files again.
	publish func(ctx context.Context, reload bool, next func(patch []byte) ([]byte, error)) error
	agreed  func(crawl.Live) []string // the settings that all nodes have to agree on, and that would change

	tokens func(full, read, fetch string) // sets the API's tokens; nil: there is no API
	// setToken sets the token of the URLFrontier service; nil: there is none
	setToken func(string)

	mu      sync.Mutex // held during a change, so that changes are serial
	current *config.Config
	patch   map[string]any // the changes made over the API, merged
	shared  map[string]any // of a cluster, by their keys: what is in force in place of the file
}

// useTokens sets the function that receives changed tokens.
func (l *liveSettings) useTokens(set func(full, read, fetch string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = set
}

// useToken sets the function that receives the changed token of the URLFrontier service.
func (l *liveSettings) useToken(set func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setToken = set
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
	if l.publish != nil {
		return l.changeAll(ctx, changed, false)
	}
	return l.replace(ctx, merged(l.patch, changed))
}

// Reload implements server.Settings.
func (l *liveSettings) Reload(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publish != nil {
		return l.changeAll(ctx, nil, true)
	}
	return l.replace(ctx, nil)
}

// changeAll changes the settings of all nodes of a cluster. This node only looks whether it can follow.
func (l *liveSettings) changeAll(ctx context.Context, changed map[string]any, reload bool) (keys []string, err error) {
	err = l.publish(ctx, reload, func(encoded []byte) ([]byte, error) {
		var before map[string]any
		if err := json.Unmarshal(encoded, &before); len(encoded) > 0 && err != nil {
			return nil, err
		}
		patch := merged(before, changed)
		if reload {
			patch = nil
		}
		inForce := patch
		if !reload {
			inForce = merged(config.PatchOfKeys(l.shared), patch)
		}
		fresh, err := l.check(inForce)
		if err != nil {
			return nil, err
		}
		if keys = l.current.Changes(fresh); len(patch) == 0 {
			return nil, nil
		}
		return json.Marshal(patch)
	})
	return keys, err
}

// Apply implements shards.Settings.
func (l *liveSettings) Apply(ctx context.Context, shared map[string]any, encoded []byte) error {
	var patch map[string]any
	if err := json.Unmarshal(encoded, &patch); len(encoded) > 0 && err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.replace(ctx, merged(config.PatchOfKeys(shared), patch))
	if err == nil {
		l.shared = shared
	}
	return err
}

// Shared implements shards.Settings.
func (l *liveSettings) Shared() map[string]any {
	fresh, err := l.load(nil)
	if err != nil {
		return nil
	}
	return fresh.Shared()
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
	return fresh, l.checkAgreed(fresh)
}

// checkAgreed refuses settings that all nodes of a cluster have to agree on.
func (l *liveSettings) checkAgreed(fresh *config.Config) error {
	if l.agreed == nil {
		return nil
	}
	options, err := fresh.CrawlOptions(programVersion())
	if err != nil {
		return rejected(err)
	}
	var problems server.Rejected
	for _, key := range l.agreed(options.Live()) {
		problems = append(problems, server.RejectedSetting{Key: key,
			Message: "cannot change while a cluster runs, because all nodes have to agree on it: stop all nodes " +
				"for that"})
	}
	if problems == nil {
		return nil
	}
	return problems
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

// reread reads the config file of this process again. What a cluster has changed for all of its nodes stays.
func (l *liveSettings) reread(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publish != nil {
		return l.replace(ctx, l.patch)
	}
	return l.replace(ctx, nil)
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

// reloadOnHangup reads the config file again at each SIGHUP, until stop is called.
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
	changes, err := l.reread(ctx)
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
	case len(changes) == 0:
		l.log.Warn("settings reloaded: " + noSettingChanged)
	}
}
