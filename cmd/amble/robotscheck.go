package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/robots"
)

func newRobotsCheckCommand(settings *settingsFlags) *cobra.Command {
	flags := &robotsFlags{settings: settings}
	command := &cobra.Command{
		Use:   "check --robots FILE-or-URL [--agent TOKEN]... URL...",
		Short: "Say of URLs whether they may be fetched, and which line decides",
		Long: `Say of each URL whether the crawler may fetch it. A line of output has "allow" or "disallow", the URL as it was given, and
the line of the file that decides or the reason why none does, separated by tabs. The URL - reads URLs from standard
input, one a line. With --json each line is an object with url, allowed, rule, line, group and reason.

The path and query of a URL are compared as they are given; the host is not looked at.

Exit code 0: all URLs are allowed. 1: some are disallowed. 2: error.`,
		Example: `  amble robots check --robots robots.txt --agent amble https://example.com/private/page
  amble robots check --robots https://example.com/robots.txt --agent amble-news,amble https://example.com/
  amble robots check --robots robots.txt --json - < urls.txt`,
		Args: func(_ *cobra.Command, urls []string) error {
			if len(urls) == 0 {
				return usagef("which URLs? Give them as arguments, or - to read them from standard input")
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
		return exit(exitProblem, nil)
	}
	return nil
}

// robotsChecker prints the verdict on one URL after the other.
type robotsChecker struct {
	body       []byte
	lines      map[int]string // of the file, that decided so far
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

// checkedURL is the JSON of one verdict. Names are part of the contract.
type checkedURL struct {
	URL     string `json:"url"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"` // "" where no rule decided
	Line    int    `json:"line"` // 0 where no line decided
	Group   string `json:"group"`
	Reason  string `json:"reason"`
}

func (c *robotsChecker) url(u string) error {
	why := c.rules.MatchURL(u)
	if !why.Allowed {
		c.disallowed = true
	}
	if c.json {
		return writeJSON(c.out, checkedURL{u, why.Allowed, c.text(why.Line), why.Line, c.rules.Group(), why.Reason.String()})
	}
	word, because := "disallow", why.Reason.String()
	if why.Allowed {
		word = "allow"
	}
	if why.Line > 0 {
		because = fmt.Sprintf("line %d: %s", why.Line, c.text(why.Line))
	}
	_, err := fmt.Fprintf(c.out, "%s\t%s\t%s\n", word, u, printable(because))
	return err
}

// text is a line of the file as its author spelt it, or "" for line 0. Of many URLs few different lines decide.
func (c *robotsChecker) text(line int) string {
	text, known := c.lines[line]
	if !known {
		text = robots.LineText(c.body, line)
		c.lines[line] = text
	}
	return text
}

// writeJSON writes one value on one line.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
