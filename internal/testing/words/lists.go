package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed old.txt
var oldText string

//go:embed kept.txt
var keptText string

// where says in what kind of text a word is old.
type where uint8

const (
	inNames where = 1 << iota
	inProse
)

// oldWord is a word that is not to be used.
type oldWord struct {
	instead string
	where   where
}

// keptName is a word that keeps its spelling below some paths.
type keptName struct {
	word string
	path string
}

// lists are both lists, compiled.
type lists struct {
	old    map[string]oldWord // by word, in lower case
	prose  *regexp.Regexp     // matches the words that are old in prose
	quoted *regexp.Regexp     // matches kept names between quotation marks
	kept   map[keptName]bool
}

// readLists compiles the texts of old.txt and kept.txt.
func readLists(old, kept string) (*lists, error) {
	l := &lists{old: make(map[string]oldWord), kept: make(map[keptName]bool)}
	var prose, quoted []string
	err := eachEntry(old, func(words []string, instead string) error {
		in := inNames | inProse
		if rest, ok := strings.CutPrefix(words[0], "names "); ok {
			in, words[0] = inNames, rest
		} else if rest, ok := strings.CutPrefix(words[0], "prose "); ok {
			in, words[0] = inProse, rest
		}
		for _, w := range words {
			l.old[w] = oldWord{instead, in}
			if in&inProse != 0 {
				prose = append(prose, strings.ReplaceAll(regexp.QuoteMeta(w), " ", `\s+`))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("old.txt: %w", err)
	}
	err = eachEntry(kept, func(words []string, _ string) error {
		last, paths, limited := strings.Cut(words[len(words)-1], " @ ")
		words[len(words)-1] = last
		for _, w := range words {
			if _, known := l.old[w]; !known {
				return fmt.Errorf("%q is kept, but old.txt does not have it", w)
			}
			if !limited {
				quoted = append(quoted, regexp.QuoteMeta(w))
			}
			for _, path := range strings.Fields(paths) {
				l.kept[keptName{w, path}] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("kept.txt: %w", err)
	}
	l.prose = alternatives(`(?i)\b(?:`, prose, `)\b`)
	l.quoted = alternatives("[\"'`,](?:", quoted, ")[\"'`,]")
	return l, nil
}

// alternatives compiles an expression that matches any of the words between before and after.
// Without words it matches nothing.
func alternatives(before string, words []string, after string) *regexp.Regexp {
	if len(words) == 0 {
		return regexp.MustCompile(`[^\s\S]`)
	}
	return regexp.MustCompile(before + strings.Join(words, "|") + after)
}

// eachEntry calls use for each line "WORD, WORD... = TEXT". Lines that begin with # are comments.
func eachEntry(text string, use func(words []string, rest string) error) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, rest, ok := strings.Cut(line, " = ")
		if !ok {
			return fmt.Errorf("%q is not WORD = TEXT", line)
		}
		if err := use(strings.Split(words, ", "), rest); err != nil {
			return err
		}
	}
	return nil
}

// keeps reports whether word keeps its spelling in the file at path.
func (l *lists) keeps(word, path string) bool {
	for dir := path; ; {
		if l.kept[keptName{word, dir}] {
			return true
		}
		cut := strings.LastIndexByte(dir, '/')
		if cut < 0 {
			return false
		}
		dir = dir[:cut]
	}
}
