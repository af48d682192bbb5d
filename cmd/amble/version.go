package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what it was built from",
		Long:    "Print the version, the commit of the build if known, and the Go release and platform.",
		Example: "  amble version",
		Args:    console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			out := command.OutOrStdout()
			text := "amble " + programVersion() + "\n"
			if info, ok := debug.ReadBuildInfo(); ok {
				text += builtFrom(info)
			}
			_, err := fmt.Fprintf(out, "%s%s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// programVersion is the version set at build time, else that of the module, else the commit, else
// "dev". It has no leading v, as in a User-Agent header.
func programVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(version, info)
}

// versionOf returns the version of a program built with a version set and with info; nil: info is
// not known.
func versionOf(set string, info *debug.BuildInfo) string {
	if set == "" && info != nil {
		if set = info.Main.Version; set == "" || set == "(devel)" {
			set = revisionOf(info)
		}
	}
	if set == "" {
		return "dev"
	}
	return strings.TrimPrefix(set, "v")
}

// revisionOf is the commit in a short form, or "" if the toolchain did not record it.
func revisionOf(info *debug.BuildInfo) string {
	const short = 12
	recorded := recordedOf(info)
	revision := recorded["vcs.revision"]
	if revision == "" {
		return ""
	}
	text := "dev-" + revision[:min(len(revision), short)]
	if recorded["vcs.modified"] == "true" {
		text += "-dirty"
	}
	return text
}

// recordedOf returns the settings that the toolchain recorded.
func recordedOf(info *debug.BuildInfo) map[string]string {
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	return recorded
}

// builtFrom is a line with the commit and its date, or "" if the toolchain did not record them.
func builtFrom(info *debug.BuildInfo) string {
	recorded := recordedOf(info)
	if recorded["vcs.revision"] == "" {
		return ""
	}
	text := "commit " + recorded["vcs.revision"]
	if at := recorded["vcs.time"]; at != "" {
		text += " of " + at
	}
	if recorded["vcs.modified"] == "true" {
		text += ", with local changes"
	}
	return text + "\n"
}
