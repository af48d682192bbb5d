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
	"github.com/amble-crawler/amble/internal/testweb"
)

// defaultDemoDelay is a delay at which the demo takes about a quarter of a minute.
const defaultDemoDelay = 150 * time.Millisecond

func newDemoCommand(settings *settingsFlags) *cobra.Command {
	d := &demo{settings: settings}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Crawl a small web on this machine and show what was done",
		Long: `Serve a small web on loopback addresses and crawl it: a town of 19 hosts and more than 400 pages, with different robots.txt
files, a Crawl-delay, closed areas, redirects, errors, a slow host and a trap without end. It is the real crawler with the
real database; nothing leaves this machine and no internet is needed. It takes about 20 seconds.

The web keeps a record of every request. At the end it is compared with what a correct crawler does there.

Everything lies in one directory, which stays: the settings (config.yaml), the database and the output (data/), and the web's
record (requests.jsonl). Without --dir it is a new directory in the system's directory for temporary files.

Settings of the environment do not count here; --set does.

Exit code 0: done, and the crawler behaved. 1: it did not, or the work failed. 2: wrong usage.`,
		Example: `  amble demo
  amble demo --dir my-demo --delay 50ms
  amble demo --set crawl.workers=1`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return d.run(command) },
	}
	command.Flags().StringVar(&d.dir, "dir", "", "`directory` for everything the demo writes; new or empty")
	command.Flags().DurationVar(&d.delay, "delay", defaultDemoDelay, "least `time` between two requests to a host (politeness.delay)")
	_ = command.MarkFlagDirname("dir") // it exists
	return command
}

// demo is one run of the demonstration.
type demo struct {
	settings *settingsFlags
	dir      string
	delay    time.Duration
}

func (d *demo) run(command *cobra.Command) error {
	if d.settings.file != "" {
		return usagef("amble demo makes settings of its own, so -c has no meaning here; change one with --set key=value")
	}
	if err := d.makeDir(); err != nil {
		return err
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

// makeDir makes the directory, or refuses one that holds something.
func (d *demo) makeDir() (err error) {
	if d.dir == "" {
		d.dir, err = os.MkdirTemp("", "amble-demo-")
		return err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exit(exitUsage, err)
	}
	if len(entries) > 0 {
		return exit(exitUsage, fmt.Errorf("%s is not empty: give --dir a new directory, or leave it out for a temporary one", d.dir))
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
	fmt.Fprintf(k.messages, "Crawling a web of %s and %s on loopback addresses, with %s between two\nrequests to a host, or more where its robots.txt asks for it. Everything goes to\n%s\n",
		plural(len(web.Sites()), "host"), plural(facts.Pages(), "page"), c.Politeness.Delay, d.dir)
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
