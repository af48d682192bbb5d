package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
)

func newArchiveCommand(settings *settingsFlags) *cobra.Command {
	return group("archive", "Read what was stored", `Read the output files of a crawl, in output.dir. Nothing is changed, and a crawl may be running.`,
		newArchiveGetCommand(settings), newArchiveListCommand(settings), newArchiveVerifyCommand(settings))
}

// openCollection opens the output of the settings.
func openCollection(settings *settingsFlags) (*archive.Collection, string, error) {
	c, err := settings.load()
	if err != nil {
		return nil, "", err
	}
	dir := c.OutputDir()
	collection, err := archive.OpenCollection(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = exit(exitProblem, fmt.Errorf("there is no output in %s yet; output.dir says where it is", dir))
	}
	return collection, dir, err
}
