package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/storage"
)

// report prints the error of a command, once, and returns the exit code.
func report(command *cobra.Command, err error) int {
	if err == nil {
		return console.ExitDone
	}
	printError(command, err)
	return exitCode(err)
}

// exitCode returns the exit code of an error. Only it maps errors to exit codes.
func exitCode(err error) int {
	code := console.ExitProblem
	var known *console.ExitError
	var problems config.Errors
	var usage *console.UsageError
	switch {
	case errors.As(err, &known):
		code = known.Code
	case errors.As(err, &problems), errors.As(err, &usage):
		code = console.ExitUsage
	}
	if code == console.ExitProblem && isDamage(err) {
		code = console.ExitDamaged
	}
	return code
}

// isDamage reports whether an error says that a database is damaged, or is none: then no command that runs
// again helps.
func isDamage(err error) bool {
	return errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrTruncated) ||
		errors.Is(err, storage.ErrNotDatabase)
}

// printError prints an error: each problem of the settings on its own line, and after wrong usage
// where to find help.
func printError(command *cobra.Command, err error) {
	var silent *console.ExitError
	var problems config.Errors
	var usage *console.UsageError
	switch {
	case errors.As(err, &silent) && silent.Err == nil:
	case errors.As(err, &problems):
		for _, p := range problems {
			command.PrintErrln("amble:", p)
		}
	case errors.As(err, &usage):
		command.PrintErrln("amble:", err)
		command.PrintErrf("Run '%s --help' for usage and examples.\n", command.CommandPath())
	default:
		command.PrintErrln("amble:", err)
	}
}
