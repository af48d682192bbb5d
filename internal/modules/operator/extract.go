//go:build !core

package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// extractFlags are the flags of amble extract.
type extractFlags struct {
	base, record, contentType string
	text, asJSON, explain     bool
	sitemap                   bool
	most                      int64 // bytes of a document or list

	crawlsText bool // a crawl with these settings needs the text
}

func newExtractCommand(settings *Program) *cobra.Command {
	f := extractFlags{}
	command := &cobra.Command{
		Use:   "extract URL|FILE|-",
		Short: "Show what is extracted from a page: links, fields, directives, text; or from a sitemap or feed",
		Long: `Show what a crawl with these settings extracts from a page: its links and their kinds, its base
URL, title, language, directives for crawlers, the fields of extract.rules and, with --text, the text. No
request is made.

The page is the newest response that the WARC files of the crawl have for a URL, a file, a record of a WARC
file, or standard input (-). A file needs --base, its URL: links are resolved against it, and extract.rules
are selected by it. The first 8 MiB are read, as in a crawl.

Of a sitemap or feed it shows the URLs, and when each was changed. The first bytes decide what a file is;
a JSON Feed also needs its --content-type, and a plain list of URLs needs --sitemap.

Exit code 0: done. 1: the page is not stored, cannot be read, or is not of these kinds. 2: wrong usage or
settings.`,
		Example: `  amble extract page.html --base https://example.com/item/7
  curl -s https://example.com/ | amble extract - --base https://example.com/ --json
  amble extract https://example.com/item/7 --explain
  amble extract sitemap.xml.gz --base https://example.com/sitemap.xml.gz
  amble extract amble-20261120121415-000001.warc.gz --url https://example.com/ --text`,
		Args: console.Exactly(1, "one URL, file or -"),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			return f.run(command, settings, c, args[0])
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.base, "base", "", "the `URL` of the file")
	flags.StringVar(&f.record, "url", "", "the `URL` of the record to read from a WARC file")
	flags.StringVar(&f.contentType, "content-type", "text/html", "the Content-Type of the file")
	flags.BoolVar(&f.text, "text", false, "also print the text of the page and of its links")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&f.explain, "explain", false, "explain how much of the document was read, and why")
	flags.BoolVar(&f.sitemap, "sitemap", false, "the file was announced as a sitemap: it may be a plain list of URLs")
	command.MarkFlagsMutuallyExclusive("base", "url")
	command.MarkFlagsMutuallyExclusive("content-type", "url")
	return command
}

func (f *extractFlags) run(command *cobra.Command, settings *Program, c *config.Config, from string) error {
	f.most = max(extract.MaxDocument, int64(c.Sitemaps.MaxSize))
	source, err := f.find(command, settings, from)
	if err != nil {
		return err
	}
	kind := extract.SniffList(source.Header.Get("Content-Type"), source.Body, f.sitemap)
	if kind != extract.NotAList {
		return f.list(command, c, source, kind)
	}
	source.cut(extract.MaxDocument)
	if !extract.IsHTML(source.Header.Get("Content-Type"), source.Body) {
		contentType := source.Header.Get("Content-Type")
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%s is not HTML: its Content-Type is %q, and its first bytes are not "+
				"those of a sitemap or feed", from, contentType))
	}
	crawls, err := c.CrawlOptions(settings.Version)
	if err != nil {
		return err
	}
	o := crawls.Extraction()
	f.crawlsText = o.Text || o.LinkText
	o.Text, o.LinkText = o.Text || f.text, o.LinkText || f.text
	page, err := extract.HTML(source.Body, source.Header, source.URL, []string{c.Robots.ProductToken}, o)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	if source.Longer {
		page.Cut |= extract.DocumentBound
	}
	if !f.text {
		hideText(&page)
	}
	if f.asJSON {
		return printJSON(command, f.describe(source.URL, &page))
	}
	return f.print(command.OutOrStdout(), source.URL, &page)
}

// hideText removes the texts that a crawl takes and --text would print.
func hideText(page *extract.Page) {
	page.Text = ""
	for i := range page.Links {
		page.Links[i].Text, page.Links[i].Rel = "", ""
	}
}

// reason says why this much of a document was read.
func (f *extractFlags) reason(page *extract.Page) string {
	rule := "no item of extract.rules matches the page"
	if page.Rule > 0 {
		rule = fmt.Sprintf("item %d of extract.rules matches the page", page.Rule)
	}
	switch {
	case f.crawlsText:
		return rule + "; output.format or recrawl.similar_bits needs the text"
	case page.Rule == 0 && f.text:
		return rule + "; --text needs the text, and a crawl reads links"
	case page.Rule == 0:
		return rule + ", and no setting needs the text"
	}
	return rule
}

// boundText says what a bound left out.
func boundText(b extract.Bounds) string {
	switch b {
	case extract.DocumentBound:
		return "the document is longer than 8 MiB; the rest was not read"
	case extract.NodesBound:
		return "the tree has 500,000 nodes; the rest was not read"
	case extract.DetailBound:
		return "the tree has 375,000 nodes; only links and directives were read behind them"
	case extract.DepthBound:
		return "elements deeper than extract.max_depth were not read"
	case extract.LinksBound:
		return "the page has more than extract.max_links links, or four times as many refused references"
	case extract.ReferencesBound:
		return "the references have more than 16 bytes for each byte of the document"
	case extract.TextBound:
		return "the text is longer than 256 KiB"
	default:
		return "the rule reached a bound of its comparisons or values"
	}
}

// bounds prints the bounds that left something out.
func (s *story) bounds(page *extract.Page) {
	for bound := extract.DocumentBound; bound != 0; bound <<= 1 {
		if page.Cut&bound != 0 {
			s.Line("bound", "%s", boundText(bound))
		}
	}
	if page.Flat {
		s.Line("bound", "elements are nested deeper than 510; deeper ones were read as siblings")
	}
}

// detail says how much of a document was read.
func detail(page *extract.Page) string {
	if page.Whole {
		return "full"
	}
	return "links"
}

// describe returns the JSON form of a page.
func (f *extractFlags) describe(u weburl.URL, page *extract.Page) *extractedPage {
	e := &extractedPage{
		URL: u.String(), Base: page.Base.String(), Title: page.Title, Language: page.Language,
		Canonical: page.Canonical.String(), Robots: page.Robots.Seen, NoIndex: page.Robots.NoIndex,
		NoFollow: page.Robots.NoFollow, Preferences: page.Robots.Preferences,
		Licenses: page.Robots.Licenses, Extracted: extractedHow(page),
		Fields: page.Fields, Links: []extractedLink{}, Refused: page.Refused, Text: page.Text,
	}
	if at := page.Robots.UnavailableAfter; !at.IsZero() {
		e.UnavailableAfter = &at
	}
	for i := range page.Links {
		l := &page.Links[i]
		e.Links = append(e.Links, extractedLink{l.URL.String(), l.Kind.String(), l.NoFollow, l.Text, l.Rel})
	}
	if f.explain {
		e.Detail, e.Rule, e.Reason, e.Bounds = detail(page), page.Rule, f.reason(page), page.Cut.Names()
	}
	return e
}

// printJSON prints an object on a line.
func printJSON(command *cobra.Command, object any) error {
	encoder := json.NewEncoder(command.OutOrStdout())
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

// print prints a page as text.
func (f *extractFlags) print(w io.Writer, u weburl.URL, page *extract.Page) error {
	s := &story{}
	s.Line("URL", "%s", u)
	if page.Base != u {
		s.Line("base", "%s", page.Base)
	}
	s.text("title", page.Title)
	s.text("language", page.Language)
	s.text("canonical", page.Canonical.String())
	s.text("robots", strings.Join(page.Robots.Seen, ", "))
	if at := page.Robots.UnavailableAfter; !at.IsZero() {
		s.Line("unavailable", "after %s", at.UTC().Format(time.RFC3339))
	}
	s.text("preferences", strings.Join(page.Robots.Preferences, ", "))
	s.text("licenses", strings.Join(page.Robots.Licenses, ", "))
	if how := extractedHow(page); how != "" {
		s.Line("extracted", "%s", how)
	}
	if f.explain {
		s.Line("detail", "%s: %s", detail(page), f.reason(page))
		s.bounds(page)
	}
	s.fields(page)
	s.links(page)
	if page.Text != "" {
		s.WriteString("\n")
		for line := range strings.SplitSeq(page.Text, "\n") {
			s.WriteString(console.Printable(line) + "\n")
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// fields prints the values of the rule's fields.
func (s *story) fields(page *extract.Page) {
	for _, name := range slices.Sorted(maps.Keys(page.Fields)) {
		values, isList := page.Fields[name].([]string)
		if !isList {
			values = []string{fmt.Sprint(page.Fields[name])}
		}
		for i, value := range values {
			label := ""
			if i == 0 {
				label = "field"
			}
			s.Line(label, "%s: %s", name, console.Printable(value))
		}
	}
	switch {
	case page.Rule > 0 && page.Cut != 0:
		s.Line("", "only a part of the document was read: fields may be missing")
	case page.Rule > 0 && page.Flat:
		s.Line("", "elements are nested too deep: fields may be missing")
	}
}

// links prints the links of a page, one a line.
func (s *story) links(page *extract.Page) {
	s.Line("links", "%s, %s refused", console.Plural(len(page.Links), "link"),
		console.Plural(page.Refused, "reference"))
	for i := range page.Links {
		l := &page.Links[i]
		mark := ""
		if l.NoFollow {
			mark = "  nofollow"
		}
		if l.Text != "" {
			mark += "  " + console.Printable(l.Text)
		}
		s.WriteString("  " + console.Pad(l.Kind.String(), 10) + "  " + l.URL.String() + mark + "\n")
	}
}

// list prints what a crawl takes from a sitemap or feed.
func (f *extractFlags) list(command *cobra.Command, c *config.Config, source *PageSource, kind extract.ListKind) error {
	s := c.SitemapOptions()
	off := ""
	switch {
	case kind.IsFeed() && !s.Feeds:
		off = "sitemaps.feeds"
	case !kind.IsFeed() && !s.Follow:
		off = "sitemaps.follow"
	}
	if off != "" {
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%s is of the kind %s, which a crawl with these settings does not read: "+
				"%s is false", source.URL, kind, off))
	}
	directives := extract.HeaderDirectives(source.Header, []string{c.Robots.ProductToken})
	e := extractedList{
		URL: source.URL.String(), Kind: kind.String(), Robots: directives.Seen, NoFollow: directives.NoFollow,
		Links: []extractedItem{},
	}
	list, err := extract.ReadList(bytes.NewReader(source.Body), kind, source.Header.Get("Content-Type"), source.URL,
		s.Lists, func(item extract.Item) error {
			x := extractedItem{
				To: item.URL.String(), Kind: item.Role.String(), Frequency: item.Frequency.String(),
				Priority: item.Priority,
			}
			if !item.Modified.IsZero() {
				modified := item.Modified.UTC()
				x.Modified = &modified
			}
			e.Links = append(e.Links, x)
			return nil
		})
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	e.Title, e.Refused = list.Title, list.Refused
	if list.Truncated || source.Longer {
		e.Extracted = archive.ExtractedPart
	}
	if f.asJSON {
		return printJSON(command, &e)
	}
	return e.print(command.OutOrStdout())
}
