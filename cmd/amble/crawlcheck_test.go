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
// which takes three minutes, is make conformance.
func TestHeavyConformance(t *testing.T) {
	t.Parallel()
	lab := must.Get(crawlcheck.New(crawlcheck.Options{
		Seed: 1, Only: "robots-[beflmowt]*,robots-s[ey]*,robots-50*,pace-[gpacr]*,directives-*,needless-*,honesty-*",
	}))(t)
	defer lab.Close()
	link := filepath.Join(t.TempDir(), "amble")
	if err := os.Symlink(os.Args[0], link); err != nil { // the test binary is amble under this name
		t.Fatal(err)
	}
	var log bytes.Buffer
	r, err := lab.Run(t.Context(), crawlcheck.Command{Dir: t.TempDir(), Output: &log, Timeout: 2 * time.Minute,
		Quiet: 12 * time.Second, Progress: func(string) {}, Args: []string{link, "run", "--set", "data_dir={dir}/data",
			"--set", "crawl.seeds_file={seedfile}", "--set", "fetch.resolver={resolver}", "--set",
			"fetch.allow_private=true", "--set", "fetch.contact=https://example.org/bot", "--set", "server.listen="}})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	report := lab.Report(r)
	for _, s := range report.Results {
		if s.Verdict != crawlcheck.Holds && s.Verdict != crawlcheck.NotRun {
			t.Errorf("%s: %s, %s: %+v", s.Station, s.Verdict, s.Why, s.Proof)
		}
	}
	if held := report.Counts[crawlcheck.Holds]; held < 39 {
		t.Errorf("%d stations hold, ended: %s\n%s", held, r.Ended, log.String())
	}
}
