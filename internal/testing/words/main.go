package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

func main() {
	list := flag.Bool("list", false, "print every finding as FILE:LINE")
	check := flag.Bool("check", false, "print every finding, and end with exit code 1 if there is one")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	found, err := run(os.Stdout, dir, *list || *check)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	case *check && found > 0:
		os.Exit(1)
	}
}

// run prints the old words in the repository at dir, and returns how many there are.
func run(w io.Writer, dir string, each bool) (int, error) {
	l, err := readLists(oldText, keptText)
	if err != nil {
		return 0, err
	}
	found, err := scan(os.DirFS(dir), l)
	if err != nil {
		return 0, err
	}
	if each {
		for _, f := range found {
			fmt.Fprintf(w, "%s:%d: %s: write %s\n", f.path, f.line, f.word, l.old[f.word].instead)
		}
	}
	return len(found), printCounts(w, l, found)
}

// count says how often a word occurs.
type count struct {
	word         string
	names, prose int
}

// printCounts prints a table of the words that were found, the most frequent first.
func printCounts(w io.Writer, l *lists, found []finding) error {
	byWord := make(map[string]*count)
	for _, f := range found {
		c := byWord[f.word]
		if c == nil {
			c = &count{word: f.word}
			byWord[f.word] = c
		}
		if f.in == inNames {
			c.names++
		} else {
			c.prose++
		}
	}
	counts := make([]*count, 0, len(byWord))
	for _, c := range byWord {
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b *count) int {
		return cmp.Or(cmp.Compare(b.names+b.prose, a.names+a.prose), cmp.Compare(a.word, b.word))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "OLD WORD\tIN NAMES\tIN PROSE\tWRITE")
	for _, c := range counts {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", c.word, c.names, c.prose, l.old[c.word].instead)
	}
	fmt.Fprintf(t, "%d findings\n", len(found))
	return t.Flush()
}
