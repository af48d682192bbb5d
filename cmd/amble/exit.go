package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/server"
	"github.com/amble-crawler/amble/storage"
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

// databaseError says what to do about a database that cannot be opened, and gives the exit code. It was left as it is.
func databaseError(ctx context.Context, c *config.Config, err error) error {
	switch {
	case errors.Is(err, storage.ErrInUse):
		return exit(exitInUse, inUse(ctx, c))
	case errors.Is(err, storage.ErrNotDatabase):
		return exit(exitProblem, fmt.Errorf("%w; it was left as it is: set data_dir to another directory, or move the file away", err))
	case errors.Is(err, storage.ErrCorrupt):
		return exit(exitProblem, fmt.Errorf("%w; it was left as it is: restore it from a copy, or begin anew with another data_dir", err))
	case danglingLink(c.DataDir) != "":
		return exit(exitProblem, fmt.Errorf("data_dir %s is a symbolic link to %s, which does not exist: make that directory, or set data_dir to another", c.DataDir, danglingLink(c.DataDir)))
	case errors.Is(err, fs.ErrNotExist):
		return exit(exitProblem, fmt.Errorf("there is no database in %s yet: amble run makes one; if there should be one, set data_dir or name the config file with -c", c.DataDir))
	}
	return exit(exitProblem, err)
}

// makeError is databaseError for commands that make the database, and the output, where there is none.
func makeError(ctx context.Context, c *config.Config, err error) error {
	if danglingLink(c.DataDir) == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)) {
		return exit(exitProblem, fmt.Errorf("%w; set data_dir, and output.dir, to directories that can be made and written to", err))
	}
	return databaseError(ctx, c, err)
}

// danglingLink is where a symbolic link leads to that leads to nothing; empty: it is none.
func danglingLink(name string) string {
	target, err := os.Readlink(name)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return target
}

// inUse says which process has the database, where that can be found out.
func inUse(ctx context.Context, c *config.Config) error {
	path := filepath.Join(c.DataDir, storage.FileName)
	_, running, err := server.AskStatus(ctx, c.DataDir, c.Server.Token)
	if err == nil || errors.Is(err, server.ErrToken) {
		return fmt.Errorf("%s is in use by the running crawl, process %d, whose API is at %s: stop that one first, see how it stands with amble status, or set another data_dir",
			path, running.Process, running.Address)
	}
	return fmt.Errorf("%s is in use by another process, most likely an amble that runs without an API (server.listen is empty) or is just starting or checking: wait for it or stop it, or set another data_dir", path)
}
