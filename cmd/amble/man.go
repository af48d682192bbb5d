//go:build man

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra/doc"
)

// With the build tag man, which only make dist sets, the program writes its man pages into a directory and ends:
// amble man DIRECTORY. Their date is SOURCE_DATE_EPOCH, so that a release is the same bytes whoever builds it.
func init() {
	if len(os.Args) != 3 || os.Args[1] != "man" {
		return
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err == nil {
		root, date := newRootCommand(), time.Unix(seconds, 0).UTC()
		root.DisableAutoGenTag = true
		header := &doc.GenManHeader{Section: "1", Date: &date, Manual: "amble", Source: "amble " + programVersion()}
		err = doc.GenManTree(root, header, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "amble: write the man pages:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
