//go:build !core

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

func newDBSalvageCommand(settings *Program) *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "salvage DIRECTORY",
		Short: "Make a new database of what is whole in a damaged one",
		Long: `Read the database in data_dir, which may be damaged anywhere, and write a new one to a directory, which
is made if it does not exist. Each row is taken only with its checksum. A host that lost rows keeps what is
left of it: URLs that are lost are new ones when they are found again, and those whose outcome is lost are
requested again. A host that has nothing left but its name gets no request for half an hour. The
damaged file is only read. The crawl must not be running, and there must be room for two more copies.

If all of it is as you want it, stop the crawl for good in the damaged directory: move its ` + storage.FileName + `
away and the new one in its place. The output and the logs of requests beside it stay as they are.

Exit code 0: nothing was lost. 1: something was, and is listed; or there is no database, or the new one cannot
be written. 2: wrong usage or settings. 3: another process has the database. 6: the file is no database.`,
		Example: `  amble db salvage /srv/salvaged
  amble db salvage --json --set data_dir=/srv/crawl /srv/salvaged`,
		Args: console.Exactly(1, "DIRECTORY"),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			return salvage(command, c, args[0], asJSON)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}

// salvagedHost is a host that lost something.
type salvagedHost struct {
	Host     string `json:"host"`
	URLs     uint32 `json:"urls"`
	Outcomes uint32 `json:"outcomes"`
	Row      bool   `json:"all"`
}

func salvage(command *cobra.Command, c *config.Config, dir string, asJSON bool) error {
	lost := []salvagedHost{}
	path := filepath.Join(c.DataDir, storage.FileName)
	r, err := storage.Salvage(command.Context(), path, dir, storage.SalvageOptions{
		Damaged: func(l storage.HostLoss) { lost = append(lost, salvagedHost(l)) },
		Lost:    leftAlone(time.Now()), Moved: sweep.Moved,
	})
	switch {
	case errors.Is(err, storage.ErrShard):
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%w: stop the node, remove this directory, and start it; it restores the "+
				"shard from the cluster", err))
	case err != nil:
		return salvageError(command.Context(), c, err)
	}
	out := command.OutOrStdout()
	if asJSON {
		err = console.WriteJSON(out, salvageObject(dir, r, lost))
	} else {
		err = printSalvaged(out, filepath.Join(dir, storage.FileName), r, lost)
	}
	if err == nil && !r.Whole() {
		err = console.Exit(console.ExitProblem, nil) // the list says it
	}
	return err
}

func salvageError(ctx context.Context, c *config.Config, err error) error {
	if errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrTruncated) {
		return console.Exit(console.ExitDamaged, err) // salvage is the last advice there is
	}
	return access.DatabaseError(ctx, c, err)
}

// leftAlone returns what makes the politeness of a host that has nothing left but its name: nobody knows what it has
// asked for.
func leftAlone(now time.Time) func(string) []byte {
	const least = 30 * time.Minute
	o := politeness.DefaultOptions()
	return func(string) []byte {
		host := politeness.NewHost(&o, politeness.State{}, now)
		host.HoldFor(now, max(least, frontier.RestartDelay), politeness.ReasonRestart)
		encoded, err := host.State(now).AppendBinary(nil)
		if err != nil {
			return nil // a state that was just made can be encoded
		}
		return encoded
	}
}

func salvageObject(dir string, r *storage.Salvaged, lost []salvagedHost) any {
	return struct {
		Database     string         `json:"database"`
		Hosts        uint64         `json:"hosts"`
		URLs         uint64         `json:"urls"`
		Pages        int            `json:"damaged_pages"`
		Rows         map[string]int `json:"damaged_rows"`
		LostURLs     uint64         `json:"lost_urls"`
		LostOutcomes uint64         `json:"lost_outcomes"`
		Uncounted    bool           `json:"more_may_be_lost"`
		Marks        bool           `json:"opt_outs_may_be_lost"`
		Policies     bool           `json:"robots_may_be_lost"`
		LostOf       []salvagedHost `json:"lost_of"`
	}{
		filepath.Join(dir, storage.FileName), r.Counters.Hosts, r.Counters.URLs, r.Pages, r.Rows, r.URLs, r.Outcomes,
		r.Uncounted, r.Marks, r.Policies, lost,
	}
}

// mostLost is how many hosts that lost something are printed; --json has all.
const mostLost = 100

func printSalvaged(w io.Writer, path string, r *storage.Salvaged, lost []salvagedHost) error {
	fmt.Fprintf(w, "%s: %s of %s\n", path, console.Plural(r.Counters.URLs, "URL"),
		console.Plural(r.Counters.Hosts, "host"))
	if r.Whole() {
		_, err := fmt.Fprintln(w, "Nothing was lost.")
		return err
	}
	rows := 0
	for _, n := range r.Rows {
		rows += n
	}
	fmt.Fprintf(w, "Damaged: %s, and %s in others. Lost: %s, and the outcomes of %s\n", console.Plural(r.Pages, "page"),
		console.Plural(rows, "row"), console.Plural(r.URLs, "URL"), console.Plural(r.Outcomes, "other URL"))
	if r.Uncounted {
		fmt.Fprintln(w, "More may be lost: the counters of the database are, so nobody knows how many URLs it had.")
	}
	if r.Marks {
		fmt.Fprintln(w, "Opt-outs and other commands may be lost: look at amble optout list, and give them again.")
	}
	if r.Policies {
		fmt.Fprintln(w, "Robots.txt files may be lost: they are fetched again before anything else of their hosts.")
	}
	if len(lost) == 0 {
		return nil
	}
	t := console.NewTable(w, "HOST", "LOST URLS", "LOST OUTCOMES", "")
	for _, l := range lost[:min(len(lost), mostLost)] {
		all := ""
		if l.Row {
			all = "all that was known of it"
		}
		name := l.Host
		if name == "" {
			name = "(the name is lost)"
		}
		_ = t.Row(name, console.Grouped(uint64(l.URLs)), console.Grouped(uint64(l.Outcomes)), all)
	}
	err := t.Flush()
	if more := len(lost) - mostLost; more > 0 {
		fmt.Fprintf(w, "and %s: see --json\n", console.Plural(more, "other host"))
	}
	return err
}
