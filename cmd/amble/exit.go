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
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/server"
	"github.com/amble-crawler/amble/storage"
)

// Exit codes. They are a part of the contract of the program and are listed in the help of the root
// command. A crash of the program has none of them: it ends by SIGABRT (abortOnCrash), which a
// shell shows as 134.
const (
	exitDone        = 0
	exitProblem     = 1   // the work found a problem
	exitUsage       = 2   // wrong usage or configuration
	exitInUse       = 3   // another process has the database
	exitNoSeed      = 4   // no seed of a run could be fetched
	exitRefused     = 5   // the cluster refuses this node
	exitDamaged     = 6   // the database is damaged, or is none
	exitInterrupted = 130 // interrupted a second time
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error // nil: the command has printed everything itself
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

// usageError is an invalid command line. Its message points to the help.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// report prints the error of a command, once, and returns the exit code. Only report maps errors to
// exit codes.
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
	if code == exitProblem && isDamage(err) {
		code = exitDamaged
	}
	printError(command, err)
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

// noArguments refuses all arguments.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q takes no arguments, and %q was given", command.CommandPath(), args[0])
	}
	return nil
}

// databaseError returns the error for a database that cannot be opened, with what to do and the
// exit code. The database is unchanged.
func databaseError(ctx context.Context, c *config.Config, err error) error {
	switch {
	case errors.Is(err, storage.ErrInUse):
		return exit(exitInUse, inUse(ctx, c))
	case errors.Is(err, storage.ErrNotDatabase):
		return exit(exitDamaged, fmt.Errorf("%w; it was not changed: set data_dir to another directory, or move the "+
			"file away", err))
	case errors.Is(err, storage.ErrCorrupt), errors.Is(err, storage.ErrTruncated):
		return exit(exitDamaged, fmt.Errorf("%w; it was not changed: %s", err, damageAdvice(c)))
	case danglingLink(c.DataDir) != "":
		return exit(exitProblem, fmt.Errorf("data_dir %s is a symbolic link to %s, which does not exist: make that "+
			"directory, or set data_dir to another", c.DataDir, danglingLink(c.DataDir)))
	case errors.Is(err, fs.ErrNotExist) && c.InCluster():
		return exit(exitProblem,
			fmt.Errorf("no node with an API runs in %s: start one, or set data_dir or server.listen to "+
				"its; amble cluster status needs none", c.DataDir))
	case errors.Is(err, fs.ErrNotExist):
		return exit(exitProblem, fmt.Errorf("there is no database in %s yet: amble run creates it; if there should "+
			"be one, set data_dir or name the config file with -c", c.DataDir))
	}
	return exit(exitProblem, err)
}

// damageAdvice says what to do about a damaged database.
func damageAdvice(c *config.Config) string {
	if c.InCluster() {
		return "remove its directory, and the node restores it from the snapshot and the log of the cluster"
	}
	if copied := filepath.Join(c.DataDir, crawl.BackupDir, storage.FileName); exists(copied) {
		return "move " + copied + " in its place, or bring over what is whole with amble db salvage"
	}
	return "restore a backup of it, or bring over what is whole with amble db salvage"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// makeError is databaseError for commands that create the database and the output.
func makeError(ctx context.Context, c *config.Config, err error) error {
	if danglingLink(c.DataDir) == "" &&
		(errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) ||
			errors.Is(err, syscall.ENOTDIR)) {
		return exit(exitProblem, fmt.Errorf("%w; set data_dir, and output.dir, to directories that can be created "+
			"and written to", err))
	}
	return databaseError(ctx, c, err)
}

// danglingLink returns the target of a symbolic link that leads to nothing, or "".
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

// inUse says which process has the database, if that is known.
func inUse(ctx context.Context, c *config.Config) error {
	path := filepath.Join(c.DataDir, storage.FileName)
	_, running, err := server.FetchStatus(ctx, c.DataDir, c.Server.Token)
	if err == nil || errors.Is(err, server.ErrToken) {
		return fmt.Errorf("%s is in use by the running crawl, process %d, whose API is at %s: stop it first, "+
			"inspect it with amble status, or set another data_dir",
			path, running.Process, running.Address)
	}
	return fmt.Errorf("%s is in use by another process, probably an amble without an API (server.listen is empty) "+
		"or one that is starting or checking: wait for it or stop it, or set another data_dir", path)
}
