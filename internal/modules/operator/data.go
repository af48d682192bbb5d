//go:build !core

package operator

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/rules/networks"
)

func newDataCommand(settings *Program) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "Show the delivery networks, and where and when their ranges were published",
		Args: console.NoArguments,
	}
	update := &cobra.Command{
		Use: "update FILE", Short: "Use the list of a file from the next start on",
		Long: `Use the list of a file instead of the one in the program, from the next start on. It is copied to
data_dir/` + networks.FileName + `; remove that to go back. For each network it has a head, and then ranges:

  Example CDN | https://cdn.example.com/ranges.txt | 2026-11-27
  192.0.2.0/24 2001:db8::/32

Exit code 0: done. 1: the file cannot be read or a line is wrong, and the list is as before.`,
		Args: console.Exactly(1, "one FILE"),
	}
	run := func(command *cobra.Command, args []string) error {
		c, err := settings.Load()
		if err != nil {
			return err
		}
		var l *networks.List
		if len(args) == 0 {
			l, err = networks.Load(c.DataDir)
		} else {
			l, err = networks.Replace(c.DataDir, args[0])
		}
		if err != nil {
			return console.Exit(console.ExitProblem, err)
		}
		_, err = io.WriteString(command.OutOrStdout(), l.String())
		return err
	}
	list.RunE, update.RunE = run, run
	return console.Group("data", "Show and renew the list of delivery networks",
		"Show and renew the list of addresses of delivery networks, which have no budget (politeness.ip_rate).\n"+
			"The program has a list with sources and dates; it never fetches another one.", list, update)
}
