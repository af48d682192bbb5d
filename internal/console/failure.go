package console

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes. They are a part of the contract of the program and are listed in the help of the root
// command. A crash of the program has none of them: it ends by SIGABRT (abortOnCrash), which a
// shell shows as 134.
const (
	ExitDone        = 0
	ExitProblem     = 1   // the work found a problem
	ExitUsage       = 2   // wrong usage or configuration
	ExitInUse       = 3   // another process has the database
	ExitNoSeed      = 4   // no seed of a run could be fetched
	ExitRefused     = 5   // the cluster refuses this node
	ExitDamaged     = 6   // the database is damaged, or is none
	exitInterrupted = 130 // interrupted a second time
)

// ExitError is an error that knows its exit code.
type ExitError struct {
	Code int
	Err  error // nil: the command has printed everything itself
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Exit ends the command with the code; err is printed unless it is nil.
func Exit(code int, err error) error { return &ExitError{Code: code, Err: err} }

// UsageError is an invalid command line. Its message points to the help.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

func (e *UsageError) Unwrap() error { return e.err }

// Wrong says that an error is one of usage.
func Wrong(err error) error { return &UsageError{err} }

// Usagef returns an error of usage.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// NoArguments refuses all arguments.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%q takes no arguments, and %q was given", command.CommandPath(), args[0])
	}
	return nil
}
