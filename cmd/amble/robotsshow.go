package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/robots"
)

func newRobotsShowCommand(settings *settingsFlags) *cobra.Command {
	flags := &robotsFlags{settings: settings}
	var base string
	command := &cobra.Command{
		Use:   "show --robots FILE-or-URL [--agent TOKEN]...",
		Short: "Show everything a robots.txt says",
		Long: `Show everything a robots.txt says: which group is meant for the crawler and how long it has to wait, all groups with
their rules, the sitemaps, and warnings about lines that do not say what their author may think.

With --json it is one object. crawl_delay is in seconds, or null where the file has none for the crawler.

Exit code 0: shown. 2: error.`,
		Example: `  amble robots show --robots https://example.com/robots.txt
  amble robots show --robots robots.txt --agent amble --json
  amble robots show --robots robots.txt --base https://example.com/robots.txt`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			tokens, record, err := flags.read(command)
			if err != nil {
				return err
			}
			if base == "" {
				base = record.FinalURL
			}
			return flags.show(command, newShownRobots(record, base, tokens))
		},
	}
	flags.addFrom(command)
	command.Flags().StringVar(&base, "base", "", "`URL` that relative sitemaps are resolved against (default: that of --robots)")
	flags.addCommon(command)
	return command
}

func (f *robotsFlags) show(command *cobra.Command, shown shownRobots) error {
	if f.json {
		return writeJSON(command.OutOrStdout(), shown)
	}
	_, err := command.OutOrStdout().Write(shown.text())
	return err
}

// shownRobots is the JSON of robots show. Names are part of the contract.
type shownRobots struct {
	Agents         []string       `json:"agents"`          // that were asked about
	Class          string         `json:"class"`           // what the answer came to
	Group          string         `json:"group"`           // that applies: one of agents, "*", or ""
	CrawlDelay     *float64       `json:"crawl_delay"`     // seconds
	EffectiveDelay *float64       `json:"effective_delay"` // seconds, with Request-rate: what the crawler keeps to
	Groups         []shownGroup   `json:"groups"`
	Sitemaps       []string       `json:"sitemaps"`
	Hosts          []string       `json:"hosts"`
	Warnings       []shownWarning `json:"warnings"`
	Omitted        int            `json:"omitted_warnings"`
	Lines          int            `json:"lines"`
	Cut            bool           `json:"cut"` // longer than what is read of it
}

type shownGroup struct {
	Agents     []shownLine `json:"agents"`
	Rules      []shownLine `json:"rules"`
	Extensions []shownLine `json:"extensions"`
}

type shownLine struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

type shownWarning struct {
	Line int    `json:"line"` // 0: the file as a whole
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func newShownRobots(record robots.Record, base string, tokens []string) shownRobots {
	file := robots.Parse(record.Body)
	policy := file.Policy(tokens...)
	shown := shownRobots{
		Agents:     tokens,
		Class:      record.Class.String(),
		Group:      policy.Group,
		CrawlDelay: policy.CrawlDelay,
		Groups:     []shownGroup{},
		Sitemaps:   append([]string{}, file.Sitemaps(base)...),
		Hosts:      append([]string{}, file.Hosts()...),
		Warnings:   []shownWarning{},
		Omitted:    file.Omitted,
		Lines:      file.Lines,
		Cut:        file.Cut || record.Cut,
	}
	if delay, ok := record.Rules(tokens...).CrawlDelay(); ok {
		seconds := delay.Seconds()
		shown.EffectiveDelay = &seconds
	}
	for _, g := range file.Groups {
		shown.Groups = append(shown.Groups, newShownGroup(g))
	}
	for _, w := range file.Warnings {
		shown.Warnings = append(shown.Warnings, shownWarning{w.Line, w.Kind.String(), w.Text})
	}
	return shown
}

func newShownGroup(g robots.Group) shownGroup {
	shown := shownGroup{Agents: []shownLine{}, Rules: []shownLine{}, Extensions: []shownLine{}}
	for _, a := range g.Agents {
		shown.Agents = append(shown.Agents, shownLine{a.Line, a.Value})
	}
	for _, r := range g.Rules {
		shown.Rules = append(shown.Rules, shownLine{r.Line, r.String()})
	}
	for _, e := range g.Extensions {
		shown.Extensions = append(shown.Extensions, shownLine{e.Line, e.Key + ": " + e.Value})
	}
	return shown
}

// text is the report for people.
func (s shownRobots) text() []byte {
	var b bytes.Buffer
	group := s.Group
	if group == "" {
		group = "none"
	}
	fmt.Fprintf(&b, "Group for %s: %s\n", strings.Join(s.Agents, ", "), group)
	fmt.Fprintf(&b, "Crawl-delay: %s\n", seconds(s.CrawlDelay))
	if s.EffectiveDelay != nil && (s.CrawlDelay == nil || *s.EffectiveDelay != *s.CrawlDelay) {
		fmt.Fprintf(&b, "Delay with Request-rate: %s\n", seconds(s.EffectiveDelay))
	}
	for i, g := range s.Groups {
		fmt.Fprintf(&b, "\nGroup %d\n", i+1)
		for _, a := range g.Agents {
			shownLine{a.Line, "User-agent: " + a.Text}.write(&b)
		}
		for _, l := range append(g.Rules, g.Extensions...) {
			l.write(&b)
		}
	}
	if len(s.Sitemaps) > 0 {
		b.WriteString("\nSitemaps\n")
	}
	for _, u := range s.Sitemaps {
		fmt.Fprintf(&b, "  %s\n", printable(u))
	}
	if len(s.Warnings) > 0 {
		b.WriteString("\nWarnings\n")
	}
	for _, w := range s.Warnings {
		shownLine{w.Line, w.Text}.write(&b)
	}
	if s.Omitted > 0 {
		fmt.Fprintf(&b, "  and %d more\n", s.Omitted)
	}
	return b.Bytes()
}

func (l shownLine) write(b *bytes.Buffer) {
	number := ""
	if l.Line > 0 {
		number = strconv.Itoa(l.Line)
	}
	fmt.Fprintf(b, "%6s  %s\n", number, printable(l.Text))
}

func seconds(s *float64) string {
	if s == nil {
		return "none"
	}
	return strconv.FormatFloat(*s, 'f', -1, 64) + " s"
}
