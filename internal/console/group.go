package console

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
)

// Group is a command that only holds others. Without one of them it prints its help.
func Group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use:   name,
		Short: short,
		Long:  long,
		Args:  knownCommand,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(commands...)
	return command
}

// knownCommand refuses any argument of a group, since it can only be the name of a command that
// does not exist.
func knownCommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := suggestions(command, args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usagef("there is no command %q in %q%s", args[0], command.CommandPath(), hint)
}

// otherWords are other names that people use for the commands.
func otherWords() map[string][]string {
	return map[string][]string{
		"run": {"crawl", "start", "fetch", "resume"}, "status": {"state", "info", "progress"},
		"hosts": {"sites", "domains"}, "urls": {"pages", "links", "list"},
		"retry": {"requeue", "again"}, "erase": {"forget", "delete", "remove", "purge"},
		"import": {"add", "feed"}, "export": {"dump"},
		"cluster": {"nodes", "shards", "members"},
		"control": {"pause", "stop", "drain", "set", "reload"},
		"config":  {"settings", "check"}, "db": {"database", "backup", "compact"}, "archive": {"warc"},
	}
}

// suggestions are the commands that a word may stand for: the word is similar to a name of the
// command, or a prefix of it.
func suggestions(group *cobra.Command, word string) (names []string) {
	for _, c := range group.Commands() {
		words := []string{c.Name()}
		if !group.HasParent() {
			words = append(words, otherWords()[c.Name()]...)
		}
		if c.IsAvailableCommand() && slices.ContainsFunc(words,
			func(w string) bool { return config.Like(word, w) || len(word) > 1 && strings.HasPrefix(w, word) }) {
			names = append(names, c.Name())
		}
	}
	return names
}
