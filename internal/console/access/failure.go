package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// DatabaseError returns the error for a database that cannot be opened, with what to do and the
// exit code. The database is unchanged.
func DatabaseError(ctx context.Context, c *config.Config, err error) error {
	switch {
	case errors.Is(err, storage.ErrInUse):
		return console.Exit(console.ExitInUse, inUse(ctx, c))
	case errors.Is(err, storage.ErrNotDatabase):
		return console.Exit(console.ExitDamaged,
			fmt.Errorf("%w; it was not changed: set data_dir to another directory, or move the file away", err))
	case errors.Is(err, storage.ErrCorrupt), errors.Is(err, storage.ErrTruncated):
		return console.Exit(console.ExitDamaged, fmt.Errorf("%w; it was not changed: %s", err, DamageAdvice(c)))
	case danglingLink(c.DataDir) != "":
		return console.Exit(console.ExitProblem,
			fmt.Errorf("data_dir %s is a symbolic link to %s, which does not exist: make that "+
				"directory, or set data_dir to another", c.DataDir, danglingLink(c.DataDir)))
	case errors.Is(err, fs.ErrNotExist) && c.InCluster():
		return console.Exit(console.ExitProblem,
			fmt.Errorf("no node with an API runs in %s: start one, or set data_dir or server.listen to "+
				"its; amble cluster status needs none", c.DataDir))
	case errors.Is(err, fs.ErrNotExist):
		return console.Exit(console.ExitProblem,
			fmt.Errorf("there is no database in %s yet: amble run creates it; if there should "+
				"be one, set data_dir or name the config file with -c", c.DataDir))
	}
	return console.Exit(console.ExitProblem, err)
}

// DamageAdvice says what to do about a damaged database.
func DamageAdvice(c *config.Config) string {
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

// MakeError is DatabaseError for commands that create the database and the output.
func MakeError(ctx context.Context, c *config.Config, err error) error {
	if danglingLink(c.DataDir) == "" &&
		(errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) ||
			errors.Is(err, syscall.ENOTDIR)) {
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%w; set data_dir, and output.dir, to directories that can be created and written to", err))
	}
	return DatabaseError(ctx, c, err)
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
