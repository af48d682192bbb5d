package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/extract"
)

// extractFlags are those of amble extract.
type extractFlags struct {
	base, record, contentType string
	text, asJSON, explain     bool
}

func newExtractCommand(settings *settingsFlags) *cobra.Command {
	f := extractFlags{}
	command := &cobra.Command{
		Use:   "extract URL|FILE|-",
		Short: "Show what a page yields: links, fields, directives, text",
		Long: `Show what a crawl with these settings takes of a page: its links and their kinds, what they are relative to,
title, language, directives for crawlers, the fields of extract.rules and, with --text, the text. No request is made.

The page is the newest answer that the WARC files of the crawl have for a URL, a file, a record of a WARC file, or
standard input (-). A file needs --base, the URL that it came from: links are relative to it, and extract.rules are
chosen by it. The first 8 MiB are read, as in a crawl.

Exit code 0: done. 1: the page is not stored, cannot be read, or is not HTML. 2: wrong usage or settings.`,
		Example: `  amble extract page.html --base https://example.com/item/7
  curl -s https://example.com/ | amble extract - --base https://example.com/ --json
  amble extract https://example.com/item/7 --explain
  amble extract amble-20261120121415-000001.warc.gz --url https://example.com/ --text`,
		Args: exactlyOne("URL, file or -"),
		RunE: func(command *cobra.Command, given []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return f.run(command, settings, c, given[0])
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.base, "base", "", "the `URL` that a file came from")
	flags.StringVar(&f.record, "url", "", "the `URL` whose record of a WARC file is read")
	flags.StringVar(&f.contentType, "content-type", "text/html", "the Content-Type that a file came with")
	flags.BoolVar(&f.text, "text", false, "also the text, and those of the links")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&f.explain, "explain", false, "say how much of the document was looked at, and why")
	command.MarkFlagsMutuallyExclusive("base", "url")
	command.MarkFlagsMutuallyExclusive("content-type", "url")
	return command
}

func (f *extractFlags) run(command *cobra.Command, settings *settingsFlags, c *config.Config, from string) error {
	source, err := f.find(command, settings, from)
	if err != nil {
		return err
	}
	if !extract.IsHTML(source.header.Get("Content-Type"), source.body) {
		contentType := source.header.Get("Content-Type")
		return exit(exitProblem, fmt.Errorf("%s is not HTML: its Content-Type is %q", from, contentType))
	}
	o, err := c.ExtractOptions()
	if err != nil {
		return err
	}
	o.Text, o.LinkText = f.text, f.text
	page, err := extract.HTML(source.body, source.header, source.url, []string{c.Robots.ProductToken}, o)
	if err != nil {
		return exit(exitProblem, err)
	}
	page.Truncated = page.Truncated || source.longer
	if f.asJSON {
		return printJSON(command, f.describe(source.url, &page))
	}
	return f.print(command.OutOrStdout(), source.url, &page)
}

// reason says why so much of a document was looked at.
func (f *extractFlags) reason(page *extract.Page) string {
	switch {
	case page.Rule > 0:
		return fmt.Sprintf("item %d of extract.rules is for the page", page.Rule)
	case f.text:
		return "--text asks for the text; no item of extract.rules is for the page"
	}
	return "no item of extract.rules is for the page, and no text is asked for"
}

// detail says how much of a document was looked at.
func detail(page *extract.Page) string {
	if page.Whole {
		return "full"
	}
	return "links"
}
