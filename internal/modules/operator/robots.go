//go:build !core

package operator

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/robots"
)

func newRobotsCommand(settings *Program) *cobra.Command {
	return console.Group("robots", "Check, show and compare robots.txt files",
		"Check URLs against a robots.txt, show everything it says, or compare two of them.",
		newRobotsCheckCommand(settings),
		newRobotsShowCommand(settings),
		newRobotsDiffCommand(settings),
	)
}

// robotsFlags are the common flags of the commands about robots.txt.
type robotsFlags struct {
	settings *Program
	from     string // diff has arguments instead
	agents   []string
	json     bool
}

func (f *robotsFlags) addFrom(command *cobra.Command) {
	command.Flags().StringVar(&f.from, "robots", "", "`file or URL` of the robots.txt; a URL is fetched as the "+
		"crawler would fetch it")
}

func (f *robotsFlags) addCommon(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&f.agents, "agent", nil, "product `token` of the crawler; the first with a group of its "+
		"own counts (default: robots.product_token and robots.fallback_tokens)")
	flags.BoolVar(&f.json, "json", false, "print JSON")
}

// tokens are the product tokens to match, the strongest first.
func (f *robotsFlags) tokens(command *cobra.Command) ([]string, error) {
	if command.Flags().Changed("agent") {
		if len(f.agents) == 0 || slices.Contains(f.agents, "") {
			return nil, console.Usagef("--agent is empty; want a product token such as amble")
		}
		return f.agents, nil
	}
	c, err := f.settings.Load()
	if err != nil {
		return nil, err
	}
	return c.ProductTokens(), nil
}

// read returns the tokens and the robots.txt of --robots. It prints a note if a URL has no
// robots.txt.
func (f *robotsFlags) read(command *cobra.Command) (tokens []string, record robots.Record, err error) {
	if f.from == "" {
		return nil, record, console.Usagef("which robots.txt? Name its file or URL: " +
			"--robots https://example.com/robots.txt")
	}
	if tokens, err = f.tokens(command); err != nil {
		return nil, record, err
	}
	reader := robotsReader{settings: f.settings}
	if record, err = reader.read(command.Context(), f.from); err != nil {
		return nil, record, err
	}
	if note := responseNote(record); note != "" {
		command.PrintErrln("note:", console.Printable(note))
	}
	return tokens, record, nil
}

func newRobotsCheckCommand(settings *Program) *cobra.Command {
	flags := &robotsFlags{settings: settings}
	command := &cobra.Command{
		Use:   "check --robots FILE-or-URL [--agent TOKEN]... URL...",
		Short: "Check whether URLs may be fetched, and which line decides",
		Long: `Check for each URL whether the crawler may fetch it. A line of output has "allow" or
"disallow", the URL as given, and the line of the file that decides or the reason why none does, separated by
tabs. The URL - reads URLs from standard input, one a line. With --json each line is an object with url,
allowed, rule, line, group and reason.

The path and query of a URL are compared as given; its host is ignored.

Exit code 0: all URLs are allowed. 1: some are disallowed. 2: error.`,
		Example: `  amble robots check --robots robots.txt --agent amble https://example.com/private/page
  amble robots check --robots https://example.com/robots.txt --agent amble-news,amble https://example.com/
  amble robots check --robots robots.txt --json - < urls.txt`,
		Args: func(_ *cobra.Command, urls []string) error {
			if len(urls) == 0 {
				return console.Usagef("which URLs? Name them as arguments, or - to read them from standard input")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"https://"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, urls []string) error { return flags.check(command, urls) },
	}
	flags.addFrom(command)
	flags.addCommon(command)
	return command
}

func (f *robotsFlags) check(command *cobra.Command, urls []string) error {
	tokens, record, err := f.read(command)
	if err != nil {
		return err
	}
	checker := robotsChecker{
		body:  record.Body,
		lines: map[int]string{},
		rules: record.Rules(tokens...),
		out:   command.OutOrStdout(),
		json:  f.json,
	}
	for _, u := range urls {
		if u == "-" {
			err = checker.urls(command.InOrStdin())
		} else {
			err = checker.url(u)
		}
		if err != nil {
			return asUsage(err)
		}
	}
	if checker.disallowed {
		return console.Exit(console.ExitProblem, nil)
	}
	return nil
}

// robotsChecker prints the verdicts.
type robotsChecker struct {
	body       []byte
	lines      map[int]string // the text of the lines that decided so far
	rules      *robots.Rules
	out        io.Writer
	json       bool
	disallowed bool
}

// maxURLLine bounds a line of standard input, in bytes.
const maxURLLine = 1 << 20

func (c *robotsChecker) urls(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxURLLine)
	for lines.Scan() {
		if line := strings.TrimSuffix(lines.Text(), "\r"); line != "" {
			if err := c.url(line); err != nil {
				return err
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("standard input: a line is longer than %d bytes; want one URL a line", maxURLLine)
	}
	return lines.Err()
}

// checkedURL is the JSON of one verdict. The names are part of the contract.
type checkedURL struct {
	URL     string `json:"url"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"` // empty: no rule decided
	Line    int    `json:"line"` // 0: no line decided
	Group   string `json:"group"`
	Reason  string `json:"reason"`
}

func (c *robotsChecker) url(u string) error {
	why := c.rules.MatchURL(u)
	if !why.Allowed {
		c.disallowed = true
	}
	if c.json {
		return console.WriteJSON(c.out, checkedURL{u, why.Allowed, c.text(why.Line), why.Line, c.rules.Group(),
			why.Reason.String()})
	}
	word, because := "disallow", why.Reason.String()
	if why.Allowed {
		word = "allow"
	}
	if why.Line > 0 {
		because = fmt.Sprintf("line %d: %s", why.Line, c.text(why.Line))
	}
	_, err := fmt.Fprintf(c.out, "%s\t%s\t%s\n", word, u, console.Printable(because))
	return err
}

// text returns a line of the file as written, or "" for line 0. It caches lines: few different
// lines decide about many URLs.
func (c *robotsChecker) text(line int) string {
	text, known := c.lines[line]
	if !known {
		text = robots.LineText(c.body, line)
		c.lines[line] = text
	}
	return text
}

func newRobotsDiffCommand(settings *Program) *cobra.Command {
	flags := &robotsFlags{settings: settings}
	command := &cobra.Command{
		Use:   "diff [--agent TOKEN]... OLD NEW",
		Short: "Show what a change of robots.txt means for a crawler",
		Long: `Show what changed for the crawler between two robots.txt files, each a file or a URL: which
group applies, its delays and its rules. Other groups and moved lines are no change. Lines that begin with -
are in the old file only, lines with + in the new one. With --json each line is an object with added, line and
text.

Exit code 0: nothing changed for the crawler. 1: something changed. 2: error.`,
		Example: `  amble robots diff yesterday.txt today.txt --agent amble
  amble robots diff robots.txt https://example.com/robots.txt`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) != 2 {
				return console.Usagef("want two robots.txt, the old and the new, each a file or a URL; %d given",
					len(files))
			}
			return nil
		},
		RunE: func(command *cobra.Command, files []string) error { return flags.diff(command, files) },
	}
	flags.addCommon(command)
	return command
}

func (f *robotsFlags) diff(command *cobra.Command, files []string) error {
	tokens, err := f.tokens(command)
	if err != nil {
		return err
	}
	reader := robotsReader{settings: f.settings}
	var parsed [2]*robots.File
	for i, from := range files {
		record, err := reader.read(command.Context(), from)
		if err != nil {
			return err
		}
		if note := responseNote(record); note != "" {
			return asUsage(fmt.Errorf("%s cannot be compared: %s", from, console.Printable(note)))
		}
		parsed[i] = robots.Parse(record.Body)
	}
	changes := robots.Diff(parsed[0], parsed[1], tokens...)
	if err := f.printChanges(command.OutOrStdout(), changes); err != nil {
		return asUsage(err)
	}
	if len(changes) > 0 {
		return console.Exit(console.ExitProblem, nil)
	}
	return nil
}

// shownChange is the JSON of one change. The names are part of the contract.
type shownChange struct {
	Added bool   `json:"added"`
	Line  int    `json:"line"` // in the file that has it; 0 if it is not a single line
	Text  string `json:"text"`
}

func (f *robotsFlags) printChanges(w io.Writer, changes []robots.Change) error {
	for _, c := range changes {
		var err error
		if f.json {
			err = console.WriteJSON(w, shownChange(c))
		} else {
			_, err = fmt.Fprintln(w, console.Printable(c.String()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
