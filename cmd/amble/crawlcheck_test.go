package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestHeavyConformance: amble by its defaults holds the stations of crawlcheck that a short run shows. The whole suite,
// which takes three minutes, is make conformance. On a machine that does nothing for some seconds requests fail, and
// stations are not shown before their hosts are tried again: then there is another run.
func TestHeavyConformance(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "amble")
	must.Do(t, os.Symlink(os.Args[0], link)) // the test binary is amble under this name
	for again := 2; ; again-- {
		report, log := conform(t, link)
		shown := report.Counts[crawlcheck.Holds] >= 39
		for _, s := range report.Results {
			switch s.Verdict {
			case crawlcheck.Holds, crawlcheck.NotRun:
			case crawlcheck.NotShown:
				shown = false
			default:
				t.Errorf("%s: %s, %s: %+v", s.Station, s.Verdict, s.Why, s.Proof)
			}
		}
		if shown || t.Failed() {
			return
		}
		must.True(t, again != 0, "%d stations hold\n%s", report.Counts[crawlcheck.Holds], log)
	}
}

// conform has a program crawl the stations, and returns what they say and what it has printed.
func conform(t *testing.T, program string) (crawlcheck.Report, string) {
	t.Helper()
	lab := must.Get(crawlcheck.New(crawlcheck.Options{
		Seed: 1, Only: "robots-[beflmowt]*,robots-s[ey]*,robots-50*,pace-[gpacr]*,directives-*,needless-*,honesty-*",
	}))(t)
	defer lab.Close()
	var log bytes.Buffer
	r, err := lab.Run(t.Context(), crawlcheck.Command{Dir: t.TempDir(), Output: &log, Timeout: 2 * time.Minute,
		Quiet: 12 * time.Second, Progress: func(string) {}, Args: []string{program, "run",
			"--set", "data_dir={dir}/data", "--set", "crawl.seeds_file={seedfile}",
			"--set", "fetch.resolver={resolver}", "--set", "fetch.allow_private=true",
			"--set", "fetch.contact=https://example.org/bot", "--set", "server.listen="}})
	must.True(t, err == nil, "%v\n%s", err, log.String())
	return lab.Report(r), log.String()
}
