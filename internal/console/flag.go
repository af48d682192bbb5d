package console

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/engine/sweep"
)

// Offer completes a flag with fixed values.
func Offer(command *cobra.Command, flag string, values []string) {
	Complete(command, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Complete completes a flag of a command. It panics if there is no such flag.
func Complete(command *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of a flag that does not exist: %v", err))
	}
}

// AtMostOne allows at most one argument; what says what it is.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usagef("%q takes one %s at most, and %d were given", command.CommandPath(), what, len(args))
		}
		return nil
	}
}

// RetryProgress returns a function that reports at intervals how many URLs are put back, or left out.
func RetryProgress(w io.Writer, clock func() time.Time) func(sweep.Retried) error {
	reported := clock()
	return func(p sweep.Retried) error {
		if now := clock(); now.Sub(reported) >= LogEvery {
			reported = now
			fmt.Fprintf(w, "%s inspected, %s so far\n", Plural(p.Inspected, "URL"), Grouped(p.Back+p.Dropped))
		}
		return nil
	}
}
