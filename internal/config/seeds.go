package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/urllist"
	"github.com/amble-crawler/amble/internal/rules/seeds"
)

// BadSeed is a seed that cannot be used, or a seeds file that cannot be read.
type BadSeed struct {
	Source Source
	Text   string // as read, shortened; empty: the file as a whole
	Reason string // what is wrong, and what to do
}

// String returns the bad seed as one line.
func (b BadSeed) String() string {
	if b.Text == "" {
		return b.Source.String() + ": " + b.Reason
	}
	return b.Source.String() + ": read " + shown(b.Text) + "; " + b.Reason
}

// VisitSeeds passes on the URLs to start from: those of crawl.seeds, those of the file crawl.seeds_file, and extra, the
// arguments of the command line. A bad one goes to bad, with its source and the reason, as does a file that cannot be
// read. The file may be of any length: each seed is passed on as soon as it is read, and nothing is kept.
func VisitSeeds(c *Config, extra []string, good func(crawl.Seed), bad func(BadSeed)) {
	v := seedVisitor{good: good, bad: bad, settings: true}
	from := c.origins["crawl.seeds"]
	for i, text := range c.Crawl.Seeds {
		v.visit(text, from.item(i))
	}
	if c.Crawl.SeedsFile != "" {
		v.visitFile(c.Crawl.SeedsFile, c.origins["crawl.seeds_file"].Source)
	}
	v.settings = false
	for i, text := range extra {
		v.visitArgument(text, Source{Name: "argument " + strconv.Itoa(i+1), rank: rankArgument})
	}
}

type seedVisitor struct {
	good     func(crawl.Seed)
	bad      func(BadSeed)
	settings bool // they are of the settings
}

func (v seedVisitor) visit(text string, from Source) {
	item, err := seeds.ParseLine(text)
	if err != nil {
		v.bad(BadSeed{Source: from, Text: shortened(text), Reason: err.Error()})
		return
	}
	v.pass(&item, from)
}

func (v seedVisitor) pass(item *seeds.Item, from Source) {
	s := item.Seed(from.String())
	s.Settings = v.settings
	v.good(s)
}

// visitArgument is visit with a hint if the argument is a file.
func (v seedVisitor) visitArgument(text string, from Source) {
	if info, err := os.Stat(text); err == nil && info.Mode().IsRegular() {
		v.bad(BadSeed{Source: from, Text: text, Reason: "is a file, not a URL; to read seeds from it use --set " +
			"crawl.seeds_file=" + text})
		return
	}
	v.visit(text, from)
}

// shortened bounds what a BadSeed keeps of a text.
func shortened(text string) string {
	const most = 4 * longestShown
	if len(text) > most {
		return strings.Clone(text[:most])
	}
	return text
}

// maxBadLines bounds the reports about one file, which may not be a list of URLs at all.
const maxBadLines = 1000

// visitFile reads a seeds file. setBy is the source of its name.
func (v seedVisitor) visitFile(path string, setBy Source) {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		err = v.visitLines(file, path)
	}
	if err == nil {
		return
	}
	reason := err.Error()
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		reason = pathError.Err.Error()
	}
	v.bad(BadSeed{Source: setBy, Reason: fmt.Sprintf("crawl.seeds_file: %s cannot be read: %s", path, reason)})
}

// visitLines reads a list. It holds one line at a time.
func (v seedVisitor) visitLines(r io.Reader, name string) error {
	list, err := urllist.NewReader(r)
	if err != nil {
		return err
	}
	defer list.Close()
	list.Seeds = true
	for bad := 0; ; {
		item, err := list.Next()
		var line *urllist.BadLine
		switch {
		case err == io.EOF:
			if bad > maxBadLines {
				v.bad(BadSeed{Source: Source{Name: name},
					Reason: fmt.Sprintf("%d more lines are bad; is this a list of URLs?", bad-maxBadLines)})
			}
			return nil
		case errors.As(err, &line):
			if bad++; bad <= maxBadLines {
				v.bad(BadSeed{Source: Source{Name: name, Line: line.Line}, Text: line.Text, Reason: line.Reason})
			}
		case err != nil:
			return err
		default:
			v.pass(&item.Item, Source{Name: name, Line: item.Line})
		}
	}
}

// seedText returns a mapping in crawl.seeds as a line of a list has it: a JSON object. Its members are checked here, so
// that a misspelt one is an error.
func seedText(node *yaml.Node) (string, *mismatch) {
	var fields map[string]any
	err := node.Decode(&fields)
	var text []byte
	if word, is := fields["store"].(string); is && (word == "no" || word == "yes") {
		fields["store"] = word == "yes"
	}
	if err == nil {
		text, err = json.Marshal(fields)
	}
	if err == nil {
		_, err = seeds.DecodeObject(text)
	}
	if err != nil {
		return "", &mismatch{read: "a seed", want: strings.TrimPrefix(err.Error(), "json: "), line: node.Line}
	}
	return string(text), nil
}
