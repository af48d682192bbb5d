package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/console/seedcommand"
)

const rootLong = `amble is a polite crawler. It starts from the given URLs, crawls the sites they reach, never
faster than each host allows, keeps everything on disk, and continues after any kind of stop.

Settings come from config.yaml, the environment (AMBLE_POLITENESS_DELAY=2s) and --set flags; later ones are
stronger. The shipped config.yaml describes each of them.`

const rootExample = `  amble config check                          is ./config.yaml correct?
  amble robots check --robots https://example.com/robots.txt https://example.com/a
                                              may this URL be fetched, and which line says so?
  amble run https://example.com/              crawl, or continue a crawl
  amble status                                what is the state of the crawl?
  amble hosts www.example.com                 what is known of a host, and why does it wait?
  amble urls --state failed                   which URLs failed, and why?
  amble retry --state failed                  request them again
  amble plan                                  what is recrawled, and how fresh are the copies?`

const exitCodes = `
Exit codes:
    0  done
    1  the work found a problem
    2  wrong usage or configuration
    3  the database is in use by another process
    4  no seed of a run could be fetched
    5  the cluster refuses this node
    6  the database is damaged, or the file is none
  130  interrupted a second time
  134  the program itself crashed, by SIGABRT: please report it
`

// newRootCommand builds the whole command line.
func newRootCommand() *cobra.Command {
	root := group("amble", "A polite crawler", rootLong)
	root.Example, root.Version = rootExample, programVersion()
	root.SetVersionTemplate("amble {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetUsageTemplate(root.UsageTemplate() + `{{if not .HasParent}}` + exitCodes + `{{end}}`)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Wrong(err) })
	root.PersistentPreRunE = flagsThatGoTogether
	settings := addSettingsFlags(root)
	root.AddCommand(
		newRunCommand(settings),
		newStatusCommand(settings),
		newHostsCommand(settings),
		newURLsCommand(settings),
		newPlanCommand(settings),
		newImportCommand(settings),
		newRetryCommand(settings),
		newDropCommand(settings),
		newControlCommand(settings),
		newOptOutCommand(settings),
		group("seed", "Add and remove seeds of a crawl", seedcommand.Long, seedcommand.New(settings.crawl)...),
		newExportCommand(settings),
		newConfigCommand(settings),
		newRobotsCommand(settings),
		newExtractCommand(settings),
		newDBCommand(settings),
		newDataCommand(settings),
		newVersionCommand(),
	)
	for _, m := range modules() {
		root.Example = m.quickStart + root.Example
		if m.command != nil {
			root.AddCommand(m.command(settings))
		}
		if m.example != "" {
			root.Example += "\n  " + m.example
		}
	}
	return root
}

// flagsThatGoTogether reports flags that exclude each other as wrong usage.
func flagsThatGoTogether(command *cobra.Command, _ []string) error {
	if err := command.ValidateFlagGroups(); err != nil {
		return console.Wrong(err)
	}
	return nil
}

// group is a command that only holds others. Without one of them it prints its help.
func group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
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
	return console.Usagef("there is no command %q in %q%s", args[0], command.CommandPath(), hint)
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

// settingsFlags are the flags that name the settings.
type settingsFlags struct {
	file string
	sets []string
}

func addSettingsFlags(root *cobra.Command) *settingsFlags {
	s := &settingsFlags{}
	flags := root.PersistentFlags()
	flags.StringVarP(&s.file, "config", "c", "", "config `file`; default: ./config.yaml if it exists")
	flags.StringArrayVar(&s.sets, "set", nil, "one setting as `key=value`, stronger than file and environment; may "+
		"be repeated")
	console.Complete(root, "config",
		cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	console.Complete(root, "set", completeSetting)
	return s
}

// load loads the settings of this process.
func (s *settingsFlags) load() (*config.Config, error) {
	return s.patched(nil)
}

// crawl returns the crawl of the settings, which may be running or not.
func (s *settingsFlags) crawl() (*access.Crawl, error) {
	c, err := s.load()
	return crawlOf(c), err
}

// crawlOf returns the crawl of loaded settings.
func crawlOf(c *config.Config) *access.Crawl {
	return &access.Crawl{Config: c, Version: programVersion(), Now: time.Now}
}

// inspect calls f with what inspects the running crawl, or its database.
func (s *settingsFlags) inspect(ctx context.Context, f func(access.Inspector) error) error {
	c, err := s.crawl()
	if err != nil {
		return err
	}
	return c.Inspect(ctx, f)
}

// patched is load with settings that are stronger than all others.
func (s *settingsFlags) patched(patch []byte) (*config.Config, error) {
	return config.LoadPatched(s.file, s.sets, os.Environ(), patch)
}

// Bounds of the cost of a completion.
const (
	maxOffers    = 100
	completeTime = 2 * time.Second
)

// offerHosts completes the flag --host with names of hosts.
func offerHosts(command *cobra.Command, settings *settingsFlags) {
	console.Complete(command, "host", completeHost(settings))
}

// completeHostArgument completes the first argument of a command with names of hosts.
func completeHostArgument(settings *settingsFlags) cobra.CompletionFunc {
	complete := completeHost(settings)
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(command, args, begun)
	}
}

// completeHost offers the names of hosts that the running crawl, or the database, knows. After an
// error it offers nothing.
func completeHost(settings *settingsFlags) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(command)), completeTime)
		defer cancel()
		_ = settings.inspect(ctx, func(i access.Inspector) (err error) {
			names, err = i.HostNames(ctx, begun, maxOffers)
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// contextOf returns the context of a command. A command that is only completed may have none.
func contextOf(command *cobra.Command) context.Context {
	if ctx := command.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// completeSetting offers the names of the settings, each with its default. After a name it offers
// the values, if there are few.
func completeSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerSettings(begun, func(string) bool { return true })
}

// completeLiveSetting is completeSetting for live settings.
func completeLiveSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerSettings(begun, config.Live)
}

func offerSettings(begun string, wanted func(key string) bool) (offers []string, _ cobra.ShellCompDirective) {
	if key, value, isValue := strings.Cut(begun, "="); isValue {
		for _, choice := range config.Choices(key) {
			if strings.HasPrefix(choice, value) && wanted(key) {
				offers = append(offers, key+"="+choice)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	for _, d := range config.Describe() {
		if strings.HasPrefix(d.Key, begun) && wanted(d.Key) {
			offers = append(offers, cobra.CompletionWithDesc(d.Key+"=", "default: "+d.Default))
		}
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
