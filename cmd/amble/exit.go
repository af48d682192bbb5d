package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
)

// Exit codes. They are part of the contract of the program and listed in the help of the root
// command. A crash of the program is none of them: it ends by SIGABRT (abortOnCrash), which a shell
// shows as 134.
const (
	exitDone        = 0
	exitProblem     = 1   // the work found a problem
	exitUsage       = 2   // wrong usage or configuration
	exitInUse       = 3   // another process has the database
	exitNoSeed      = 4   // of a run, no seed could be fetched
	exitInterrupted = 130 // interrupted a second time
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error // nil: the command has said everything itself
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit ends the command with the code; err is printed unless it is nil.
func exit(code int, err error) error { return &exitError{code: code, err: err} }

// usageError is a command line that cannot be meant; what is printed points to the help.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// report prints the error of a command, once, and returns the exit code. This is the only place that knows both.
func report(command *cobra.Command, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitProblem
	var known *exitError
	var problems config.Errors
	var usage *usageError
	switch {
	case errors.As(err, &known):
		code = known.code
	case errors.As(err, &problems), errors.As(err, &usage):
		code = exitUsage
	}
	printError(command, err)
	return code
}

// printError says what went wrong: each problem of the settings on its own line, and after wrong usage where to find help.
func printError(command *cobra.Command, err error) {
	var silent *exitError
	var problems config.Errors
	var usage *usageError
	switch {
	case errors.As(err, &silent) && silent.err == nil:
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

// noArguments is for commands that take flags only.
func noArguments(command *cobra.Command, given []string) error {
	if len(given) > 0 {
		return usagef("%q takes no arguments, and %q was given", command.CommandPath(), given[0])
	}
	return nil
}
