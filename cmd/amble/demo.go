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
	"github.com/amble-crawler/amble/internal/testing/testweb"
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

func newDemoCommand(settings *settingsFlags) *cobra.Command {
	d := &demo{settings: settings}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Crawl a small web on this machine and show what happened",
		Long: `Serve a small web on loopback addresses and crawl it: a town of 19 hosts and more than 400
pages, with different robots.txt files, a Crawl-delay, disallowed areas, redirects, errors, a slow host and an
endless trap. It is the real crawler with the real database; nothing leaves this machine and no internet is
needed. It takes about 20 seconds.

With --nodes 3 three nodes of a cluster crawl the web together: three processes, each with a NATS server
inside. In the middle one of them is killed as by a power cut, and the others go on with its hosts. That takes
one to two minutes.

The web records every request. At the end the record is compared with what a correct crawler does there.

Everything is in one directory, which is kept: the settings (config.yaml), the database and the output
(data/), and the web's record (requests.jsonl). Without --dir it is a new temporary directory.

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
	settings *settingsFlags
	dir      string
	delay    time.Duration
	nodes    int
}

func (d *demo) run(command *cobra.Command) error {
	if d.settings.file != "" {
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
	sites, facts := testweb.Demo()
	web, err := testweb.New(testweb.Config{Sites: sites})
	if err != nil {
		return err
	}
	c, err := d.configure(web, facts)
	if err == nil {
		err = d.crawl(command, c, web, facts)
	}
	return errors.Join(err, web.Close())
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
  max_depth: %[2]d            # bounds the calendar, which has no end
  give_up_after: 3s
  shutdown_grace: 5s
  seeds:
%[3]s
politeness:
  delay: %[4]s
  ip_rate: 0               # no budget of an address: all hosts have loopback addresses
retry:
  delay: 500ms
fetch:
  contact: https://example.org/amble-demo
  allow_private: true      # the demo's web has loopback addresses only
  resolver: %[5]s # the demo's own DNS
server:
  listen: 127.0.0.1:0      # any free port
`

// configure writes the config file and loads it.
func (d *demo) configure(web *testweb.Web, facts testweb.Facts) (*config.Config, error) {
	var seeds []string
	for _, s := range facts.Seeds {
		seeds = append(seeds, "    - "+web.URL(s.Host, s.Path))
	}
	path := d.configFile()
	text := fmt.Sprintf(demoConfig, path, facts.MaxDepth, strings.Join(seeds, "\n"), d.delay, web.ResolverAddr())
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		return nil, err
	}
	return d.load(nil)
}

func (d *demo) load(patch []byte) (*config.Config, error) {
	return config.LoadPatched(d.configFile(), d.settings.sets, nil, patch)
}

func (d *demo) configFile() string { return filepath.Join(d.dir, "config.yaml") }

func (d *demo) crawl(command *cobra.Command, c *config.Config, web *testweb.Web, facts testweb.Facts) error {
	k := newCrawling(c, d.load, command.ErrOrStderr())
	fmt.Fprintf(k.messages, "Crawling a web of %s and %s on loopback addresses, with %s between two\nrequests to a "+
		"host, or the longer crawl delay of its robots.txt. Everything goes to\n%s\n",
		console.Plural(len(web.Sites()), "host"), console.Plural(facts.Pages(), "page"), c.Politeness.Delay, d.dir)
	seeds, err := readSeeds(c, nil, func(text string) { k.notice("bad seed", text) })
	if err != nil {
		return err
	}
	k.seeds = seeds.good
	out, err := k.run(command.Context())
	if err != nil {
		return err
	}
	log := web.Requests()
	if err := log.Save(filepath.Join(d.dir, "requests.jsonl")); err != nil {
		return err
	}
	r := &demoReport{config: c, dir: d.dir, out: out, log: log, facts: facts, web: web}
	return r.print(command.OutOrStdout())
}
