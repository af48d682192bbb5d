//go:build !core

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
)

// defaultDemoDelay is a delay at which the demo takes about 15 seconds.
const defaultDemoDelay = 150 * time.Millisecond

// demoModule is the demonstration.
func demoModule() module {
	return module{
		command:    newDemoCommand,
		quickStart: "  amble demo                                  see a crawl of a small web on this machine\n",
	}
}

// demoNodes is how many nodes crawl together, if several do.
const demoNodes = 3

func newDemoCommand(settings *access.Settings) *cobra.Command {
	d := &demo{settings: settings}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Crawl a small web on this machine and show what happened",
		Long: `Serve a small web on loopback addresses and crawl it. Each of its stations is one or more hosts with
one rule of good manners: a robots.txt of some kind, a Crawl-delay, a Retry-After, a page whose links are not to be
followed, a redirect loop, an endless calendar, a wall, a body that never ends. It is the real crawler with the real
database; nothing leaves this machine and no internet is needed. It takes about 20 seconds.

With --nodes 3 three nodes of a cluster crawl the web together: three processes, each with a NATS server
inside. In the middle one of them is killed as by a power cut, and the others go on with its hosts. That takes
one to two minutes.

The web records every request, and judges by its record whether the crawler kept the rules. It is the web of
the program crawlcheck, which grades any crawler.

Everything is in one directory, which is kept: the settings (config.yaml), the database and the output
(data/), the web's record (requests.jsonl), and each rule with the requests that show it (report.html). Without
--dir it is a new temporary directory.

Settings of the environment are ignored; --set is not.

Exit code 0: done, and the crawler behaved. 1: it did not, or an error occurred. 2: wrong usage.`,
		Example: `  amble demo
  amble demo --nodes 3
  amble demo --dir my-demo --delay 50ms
  amble demo --set crawl.workers=1`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return d.run(command) },
	}
	command.Flags().StringVar(&d.dir, "dir", "", "`directory` for all files of the demo; new or empty")
	command.Flags().DurationVar(&d.delay, "delay", defaultDemoDelay,
		"least `time` between two requests to a host (politeness.delay)")
	command.Flags().IntVar(&d.nodes, "nodes", 1, "`number` of nodes that crawl together: 1 or 3")
	_ = command.MarkFlagDirname("dir") // the flag exists
	return command
}

// demo is one run of the demonstration.
type demo struct {
	settings *access.Settings
	dir      string
	delay    time.Duration
	nodes    int
}

func (d *demo) run(command *cobra.Command) error {
	if d.settings.File != "" {
		return console.Usagef("amble demo has its own settings and takes no -c; change one with --set key=value")
	}
	if d.nodes != 1 && d.nodes != demoNodes {
		return console.Usagef("--nodes is %d; it may be 1 or %d", d.nodes, demoNodes)
	}
	if err := d.makeDir(); err != nil {
		return err
	}
	if d.nodes > 1 {
		return d.runCluster(command)
	}
	lab, err := crawlcheck.New(d.stations())
	if err != nil {
		return err
	}
	c, err := d.configure(lab)
	if err == nil {
		err = d.crawl(command, c, lab)
	}
	return errors.Join(err, lab.Close())
}

// stations are those that a demo has time for.
func (d *demo) stations() crawlcheck.Options {
	return crawlcheck.Options{
		Seed: 1, Only: "!traps-maze,!robots-stricter,!robots-challenge-later", Kill: d.nodes > 1,
	}
}

// makeDir makes the directory. It refuses a directory that is not empty.
func (d *demo) makeDir() (err error) {
	if d.dir == "" {
		d.dir, err = os.MkdirTemp("", "amble-demo-")
		return err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return console.Exit(console.ExitUsage, err)
	}
	if len(entries) > 0 {
		return console.Exit(console.ExitUsage,
			fmt.Errorf("%s is not empty: set --dir to a new directory, or omit it for a temporary one", d.dir))
	}
	return os.MkdirAll(d.dir, 0o750)
}

// demoConfig is the config file of a demo.
const demoConfig = `# The settings of a crawl by "amble demo". Its web is gone with the demo; the rest can be looked at:
# amble status -c %[1]s
data_dir: ./data
crawl:
  give_up_after: 3s
  shutdown_grace: 5s
  seeds:
%[2]s
politeness:
  delay: %[3]s
  ip_rate: 0               # no budget of an address: all hosts have loopback addresses
retry:
  delay: 500ms
fetch:
  contact: https://example.org/amble-demo
  allow_private: true      # the demo's web has loopback addresses only
  resolver: %[4]s # the demo's own DNS
server:
  listen: 127.0.0.1:0      # any free port
`

// configure writes the config file and loads it.
func (d *demo) configure(lab *crawlcheck.Lab) (*config.Config, error) {
	path := d.configFile()
	text := fmt.Sprintf(demoConfig, path, demoSeeds(lab), d.delay, lab.Web.ResolverAddr())
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		return nil, err
	}
	return d.load(nil)
}

// demoSeeds are the seeds in a config file.
func demoSeeds(lab *crawlcheck.Lab) string { return "    - " + strings.Join(lab.Homes(), "\n    - ") }

func (d *demo) load(patch []byte) (*config.Config, error) {
	return config.LoadPatched(d.configFile(), d.settings.Sets, nil, patch)
}

func (d *demo) configFile() string { return filepath.Join(d.dir, "config.yaml") }

func (d *demo) crawl(command *cobra.Command, c *config.Config, lab *crawlcheck.Lab) error {
	k := newCrawling(c, d.load, command.ErrOrStderr())
	_, stations := lab.Unseen()
	fmt.Fprintf(k.messages, "Crawling a web of %s and %s on loopback addresses, with %s between two\nrequests to a "+
		"host, or the longer crawl delay of its robots.txt. Everything goes to\n%s\n",
		console.Plural(stations, "station"), console.Plural(len(lab.Homes()), "host"), c.Politeness.Delay, d.dir)
	seeds, err := readSeeds(c, nil, func(text string) { k.notice("bad seed", text) })
	if err != nil {
		return err
	}
	k.seeds = seeds.good
	began := time.Now()
	out, err := k.run(command.Context())
	if err != nil {
		return err
	}
	judged, err := d.judge(lab, crawlcheck.Run{
		Starts: []time.Time{began}, Exited: !out.Stopped(), Ended: "the crawl ended",
		Gap: c.Politeness.Delay,
	})
	if err != nil {
		return err
	}
	r := &demoReport{config: c, dir: d.dir, out: out, judged: judged, lab: lab}
	return r.print(command.OutOrStdout())
}

// judge writes what the web has recorded, and what it shows, to files.
func (d *demo) judge(lab *crawlcheck.Lab, r crawlcheck.Run) (*crawlcheck.Report, error) {
	judged := lab.Report(r)
	f, err := os.Create(filepath.Join(d.dir, "report.html"))
	if err != nil {
		return nil, err
	}
	return &judged, errors.Join(judged.WriteHTML(f), f.Close(),
		lab.Web.Requests().Save(filepath.Join(d.dir, "requests.jsonl")))
}
