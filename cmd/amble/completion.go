package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
)

// Bounds of the cost of a completion.
const (
	maxOffers    = 100
	completeTime = 2 * time.Second
)

// offer completes a flag with fixed values.
func offer(command *cobra.Command, flag string, values []string) {
	completeFlag(command, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func completeFlag(command *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of a flag that does not exist: %v", err))
	}
}

// offerHosts completes the flag --host with names of hosts.
func offerHosts(command *cobra.Command, settings *settingsFlags) {
	completeFlag(command, "host", completeHost(settings))
}

// completeHostArgument completes the first argument of a command with names of hosts.
func completeHostArgument(settings *settingsFlags) cobra.CompletionFunc {
	complete := completeHost(settings)
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(command, args, begun)
	}
}

// completeHost offers the names of hosts that the running crawl, or the database, knows. After an
// error it offers nothing.
func completeHost(settings *settingsFlags) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(command)), completeTime)
		defer cancel()
		_ = withInspector(ctx, settings, func(i inspector) (err error) {
			names, err = i.HostNames(ctx, begun, maxOffers)
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// contextOf returns the context of a command. A command that is only completed may have none.
func contextOf(command *cobra.Command) context.Context {
	if ctx := command.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// completeSetting offers the names of the settings, each with its default. After a name it offers
// the values, if there are few.
func completeSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerSettings(begun, func(string) bool { return true })
}

// completeLiveSetting is completeSetting for live settings.
func completeLiveSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerSettings(begun, config.Live)
}

func offerSettings(begun string, wanted func(key string) bool) (offers []string, _ cobra.ShellCompDirective) {
	if key, value, isValue := strings.Cut(begun, "="); isValue {
		for _, choice := range config.Choices(key) {
			if strings.HasPrefix(choice, value) && wanted(key) {
				offers = append(offers, key+"="+choice)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	for _, d := range config.Describe() {
		if strings.HasPrefix(d.Key, begun) && wanted(d.Key) {
			offers = append(offers, cobra.CompletionWithDesc(d.Key+"=", "default: "+d.Default))
		}
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
