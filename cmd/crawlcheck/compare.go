package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
)

// column is what all runs of a crawler with the same settings have shown.
type column struct {
	settings string
	runs     int
	verdicts map[string][]crawlcheck.Verdict // by station, one for each run
	levels   map[crawlcheck.Level]int        // rules that hold in all runs
}

// compare prints reports side by side. Reports of the same settings share a column, with the worst verdict.
func compare(files []string, out, messages io.Writer) int {
	columns, stations, err := readColumns(files)
	if err != nil {
		fmt.Fprintln(messages, "crawlcheck:", err)
		return exitUsage
	}
	var b strings.Builder
	row := func(first, level string, cell func(*column) string) {
		fmt.Fprintf(&b, "| %s | %s |", first, level)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", cell(c))
		}
		b.WriteString("\n")
	}
	row("Station", "Level", func(c *column) string { return fmt.Sprintf("%s (%d runs)", c.settings, c.runs) })
	row("---", "---", func(*column) string { return "---" })
	for _, s := range stations {
		row(s.Station, string(s.Level), func(c *column) string {
			worst := worstOf(c.verdicts[s.Station])
			if worst == crawlcheck.Holds {
				c.levels[s.Level]++
			}
			return strings.ReplaceAll(string(worst), "broken", "**broken**")
		})
	}
	for _, level := range []crawlcheck.Level{crawlcheck.Must, crawlcheck.Should, crawlcheck.Courtesy} {
		row("hold", string(level), func(c *column) string { return fmt.Sprint(c.levels[level]) })
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return exitUsage
	}
	return exitHold
}

// worstOf returns the verdict that is no pass, if there is one.
func worstOf(list []crawlcheck.Verdict) crawlcheck.Verdict {
	for _, v := range []crawlcheck.Verdict{crawlcheck.Broken, crawlcheck.NotShown, crawlcheck.NotRun} {
		if slices.Contains(list, v) {
			return v
		}
	}
	if len(list) == 0 {
		return crawlcheck.NotRun
	}
	return crawlcheck.Holds
}

func readColumns(files []string) (columns []*column, stations []crawlcheck.Result, err error) {
	if len(files) == 0 {
		return nil, nil, errors.New("compare needs reports that --json has written")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		var r crawlcheck.Report
		if err := json.Unmarshal(text, &r); err != nil || r.Schema != crawlcheck.Schema {
			return nil, nil, fmt.Errorf("%s is no report of schema %d: %w", file, crawlcheck.Schema, err)
		}
		i := slices.IndexFunc(columns, func(c *column) bool { return c.settings == r.Settings })
		if i < 0 {
			i = len(columns)
			columns = append(columns, &column{
				settings: r.Settings, verdicts: make(map[string][]crawlcheck.Verdict),
				levels: make(map[crawlcheck.Level]int),
			})
		}
		columns[i].runs++
		for _, s := range r.Results {
			columns[i].verdicts[s.Station] = append(columns[i].verdicts[s.Station], s.Verdict)
			if !slices.ContainsFunc(stations, func(k crawlcheck.Result) bool { return k.Station == s.Station }) {
				stations = append(stations, s)
			}
		}
	}
	return columns, stations, nil
}
