//go:build !core

package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// robotsReader reads robots.txt files from disk and from the web.
type robotsReader struct {
	settings  *Program
	requested bool // a request was made: the next one waits for politeness.delay
}

// read returns the robots.txt at from, a file or a URL. The settings are read for a URL only.
func (r *robotsReader) read(ctx context.Context, from string) (robots.Record, error) {
	if IsWebURL(from) {
		record, err := r.fetch(ctx, from)
		return record, asUsage(err)
	}
	body, err := readRobotsFile(from)
	return robots.Record{Class: robots.ClassFound, Copy: robots.ClassFound, Body: body}, asUsage(err)
}

// IsWebURL reports whether an argument is a URL and no file.
func IsWebURL(from string) bool {
	lower := strings.ToLower(from)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// asUsage gives the error the exit code 2: these commands use 1 for a result.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return console.Exit(console.ExitUsage, err)
}

// readRobotsFile reads one byte more than the crawler would, so that the parser can tell that a
// file is cut.
func readRobotsFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(file, robots.MaxBody+1)); err == nil {
			return body, nil
		}
	}
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		err = pathError.Err
	}
	return nil, fmt.Errorf("robots.txt %s cannot be read: %w", path, err)
}

// fetch fetches a robots.txt as the crawler would: with its User-Agent, its limits and its delay
// between two requests, following the redirects as RFC 9309 section 2.3.1.2 says.
func (r *robotsReader) fetch(ctx context.Context, rawURL string) (robots.Record, error) {
	c, err := r.settings.Load()
	if err != nil {
		return robots.Record{}, err
	}
	client, err := fetch.New(c.FetchOptions(r.settings.Version), time.Now)
	if err != nil {
		return robots.Record{}, err
	}
	defer client.Close()
	options := c.RobotsOptions()
	record, action := robots.Record{}, robots.Action{Kind: robots.ActionRedirect, URL: rawURL}
	for action.Kind == robots.ActionRedirect {
		if r.requested {
			if err := pause(ctx, c.Politeness.Delay); err != nil {
				return record, err
			}
		}
		r.requested = true
		outcome, err := fetchRobots(ctx, client, action)
		if err != nil {
			return record, fmt.Errorf("robots.txt cannot be fetched: %w", err)
		}
		record, action = options.Next(record, outcome, time.Now())
	}
	return record, nil
}

// fetchRobots makes one request. Only a response is an outcome here. A person wants to be told that
// the host name does not exist, not that everything is disallowed.
func fetchRobots(ctx context.Context, client *fetch.Client, action robots.Action) (robots.Outcome, error) {
	u, err := weburl.Parse(action.URL)
	if err != nil {
		return robots.Outcome{}, err
	}
	resolution, err := client.Resolve(ctx, u.Host(), false)
	if err != nil {
		return robots.Outcome{}, withHint(err)
	}
	response, err := client.Do(ctx, fetch.Request{URL: u, Address: resolution.Addrs[0], MaxBody: robots.MaxBody + 1,
		AnyType: true})
	if err != nil {
		return robots.Outcome{}, withHint(err)
	}
	defer response.Close()
	body, err := response.Body.Load(nil, robots.MaxBody+1)
	if err != nil {
		return robots.Outcome{}, err
	}
	header := response.Header
	return robots.Outcome{
		URL:       u.String(),
		Redirects: action.Redirects,
		Status:    response.Status,
		Header: robots.Header{
			ContentType:  header.Get("Content-Type"),
			Location:     header.Get("Location"),
			RetryAfter:   header.Get("Retry-After"),
			CacheControl: header.Get("Cache-Control"),
			Expires:      header.Get("Expires"),
			Date:         header.Get("Date"),
			Age:          header.Get("Age"),
			ETag:         header.Get("ETag"),
			LastModified: header.Get("Last-Modified"),
		},
		Body:      bytes.Clone(body),
		Truncated: response.Truncated,
	}, nil
}

// withHint says what to do about an address that may not be reached.
func withHint(err error) error {
	var failed *fetch.Error
	if errors.As(err, &failed) && failed.Kind == fetch.KindBlockedAddress && !errors.Is(err, fetch.ErrPort) {
		return fmt.Errorf("%w; to reach private addresses use --set fetch.allow_private=true", err)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// responseNote says what a response means that was no robots.txt, or "".
func responseNote(record robots.Record) string {
	switch record.Class {
	case robots.ClassUnavailable:
		return fmt.Sprintf("%s: no robots.txt (status %d): everything is allowed", record.FinalURL, record.Status)
	case robots.ClassNotRobots:
		return fmt.Sprintf("%s: the response is no robots.txt: everything is allowed", record.FinalURL)
	case robots.ClassForbidden:
		return fmt.Sprintf("%s: forbidden (status %d): everything is disallowed", record.FinalURL, record.Status)
	case robots.ClassUnreachable:
		return fmt.Sprintf("robots.txt is unreachable (status %d): everything is disallowed for now (RFC 9309 "+
			"section 2.3.1.4)", record.Status)
	}
	return ""
}

func newRobotsShowCommand(settings *Program) *cobra.Command {
	flags := &robotsFlags{settings: settings}
	var base string
	command := &cobra.Command{
		Use:   "show --robots FILE-or-URL [--agent TOKEN]...",
		Short: "Show everything that a robots.txt says",
		Long: `Show everything that a robots.txt says: the group that applies to the crawler and its delay,
all groups with their rules, the sitemaps, and warnings about lines that may not mean what their author
thinks.

With --json it is one object. crawl_delay is in seconds, or null if the file has none for the crawler.

Exit code 0: shown. 2: error.`,
		Example: `  amble robots show --robots https://example.com/robots.txt
  amble robots show --robots robots.txt --agent amble --json
  amble robots show --robots robots.txt --base https://example.com/robots.txt`,
		Args:              console.NoArguments,
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
	command.Flags().StringVar(&base, "base", "", "`URL` that relative sitemaps are resolved against (default: that "+
		"of --robots)")
	flags.addCommon(command)
	return command
}

func (f *robotsFlags) show(command *cobra.Command, shown shownRobots) error {
	if f.json {
		return console.WriteJSON(command.OutOrStdout(), shown)
	}
	_, err := command.OutOrStdout().Write(shown.text())
	return err
}

// shownRobots is the JSON of robots show. The names are part of the contract.
type shownRobots struct {
	Agents     []string `json:"agents"`      // as given
	Class      string   `json:"class"`       // what the response means
	Group      string   `json:"group"`       // that applies: one of agents, "*", or ""
	CrawlDelay *float64 `json:"crawl_delay"` // seconds
	// seconds, with Request-rate: the delay that the crawler keeps
	EffectiveDelay *float64       `json:"effective_delay"`
	Groups         []shownGroup   `json:"groups"`
	Sitemaps       []string       `json:"sitemaps"`
	Hosts          []string       `json:"hosts"`
	Warnings       []shownWarning `json:"warnings"`
	Omitted        int            `json:"omitted_warnings"`
	Lines          int            `json:"lines"`
	Cut            bool           `json:"cut"` // the file is longer than the part that was read
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
		fmt.Fprintf(&b, "  %s\n", console.Printable(u))
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
	fmt.Fprintf(b, "%6s  %s\n", number, console.Printable(l.Text))
}

func seconds(s *float64) string {
	if s == nil {
		return "none"
	}
	return strconv.FormatFloat(*s, 'f', -1, 64) + " s"
}
