package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/server"
	"github.com/amble-crawler/amble/storage"
)

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
