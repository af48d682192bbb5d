package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
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

// demoReport says what the demo did, by the record that its web kept.
type demoReport struct {
	config *config.Config
	dir    string
	out    outcome
	log    testweb.Log
	facts  testweb.Facts
	web    *testweb.Web
}

func (r *demoReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", happened(r.config, r.out))
	fmt.Fprintf(&b, "What the web itself saw, in %s. The least gap is the shortest time from the\nend of one request to the start of the next:\n",
		plural(len(r.log), "request"))
	tooShort := r.writeHosts(&b)
	b.WriteString("\n")
	if err := r.writeDenied(&b); err != nil {
		return exit(exitProblem, err)
	}
	var wrong []string
	early := len(r.log.BeforeRobots())
	if !r.out.Stopped {
		writePostponed(&b, r.out.Postponed, time.Now())
		wrong = r.facts.Check(r.log)
		writeVerdict(&b, wrong, tooShort, early)
	}
	r.writeNext(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(wrong)+tooShort+early > 0 {
		return exit(exitProblem, errors.New("the crawler did not behave as a correct one does, see above"))
	}
	return nil
}

// writeHosts writes a row for each host that was asked, and returns how many of their gaps were too short.
func (r *demoReport) writeHosts(b *strings.Builder) (tooShort int) {
	rows := [][]string{{"host", "robots", "2xx", "3xx", "4xx", "5xx", "broken", "least gap", "delay in force"}}
	for _, host := range r.log.Hosts() {
		log := r.log.Host(host)
		cells := []string{host, dash(len(log) - len(log.Pages()))}
		for _, n := range byClass(log.Pages()) {
			cells = append(cells, dash(n))
		}
		delay, why := r.config.Politeness.Delay, ""
		if asked := r.facts.CrawlDelay[host]; asked > delay {
			delay, why = asked, ", its Crawl-delay"
		}
		if short := len(log.ShortGaps(delay)); short > 0 {
			tooShort += short
			why += ": TOO SHORT " + plural(short, "time")
		}
		rows = append(rows, append(cells, leastGap(log), delay.String()+why))
	}
	writeTable(b, rows)
	return tooShort
}

// byClass counts the answers with 2xx, 3xx, 4xx, 5xx, and those that broke off.
func byClass(log testweb.Log) (n [5]int) {
	for _, q := range log {
		if class := q.Status/100 - 2; q.Status != 0 && class >= 0 && class < 4 {
			n[class]++
		} else {
			n[4]++
		}
	}
	return n
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func leastGap(log testweb.Log) string {
	gaps := log.Gaps()
	if len(gaps) == 0 {
		return "-"
	}
	least := gaps[0].Length
	for _, g := range gaps {
		least = min(least, g.Length)
	}
	return least.Truncate(100 * time.Microsecond).String() // rounded up it might look long enough
}

// writeVerdict says whether the crawler did what a correct one does.
func writeVerdict(b *strings.Builder, wrong []string, tooShort, early int) {
	yes := func(good bool) string {
		if good {
			return "yes"
		}
		return "NO"
	}
	b.WriteString("\n")
	writeTable(b, [][]string{
		{"every page asked for that should be, and no other:", yes(len(wrong) == 0)},
		{"every host left alone for its delay after each request:", yes(tooShort == 0)},
		{"no page asked for before its host's robots.txt:", yes(early == 0)},
	})
	for _, text := range wrong[:min(len(wrong), maxPostponed)] {
		fmt.Fprintln(b, "    "+text)
	}
}

// writeNext says where everything lies and what to try next.
func (r *demoReport) writeNext(b *strings.Builder) {
	info, _ := debug.ReadBuildInfo()
	amble, settings := commandOf(os.Args[0], info), " -c "+filepath.Join(r.dir, "config.yaml")
	b.WriteString("\nTry next:\n")
	writeTable(b, [][]string{
		{amble + " status" + settings, "what the database knows"},
		{amble + " db check" + settings, "is it sound?"},
		{amble + " config show" + settings, "the settings of this crawl"},
		{"less " + filepath.Join(r.config.OutputDir(), "pages-000001.jsonl"), "the pages, one JSON object a line"},
		{"less " + filepath.Join(r.dir, "requests.jsonl"), "what the web saw"},
	})
	fmt.Fprintf(b, "All of it lies in %s, which can be deleted.\n", r.dir)
}

// commandOf is what to type for the program that runs as a file. go run deletes that file at the end, so there it is go run once more.
func commandOf(file string, info *debug.BuildInfo) string {
	dir := filepath.ToSlash(filepath.Dir(file))
	if info == nil || info.Path == "" || !strings.Contains(dir, "/go-build") || !strings.HasSuffix(dir, "/exe") {
		return file
	}
	if v := info.Main.Version; v != "" && v != "(devel)" && !strings.Contains(v, "+dirty") {
		return "go run " + info.Path + "@" + v
	}
	return "go run " + info.Path
}

// maxDenied is how many denied URLs the report names, each of another host.
const maxDenied = 5

// writeDenied names some URLs that robots.txt kept the crawler from, each with the line that did.
func (r *demoReport) writeDenied(b *strings.Builder) error {
	n := r.out.since("denied")
	if n == 0 {
		return nil
	}
	store, err := storage.Open(r.config.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	rows, err := r.denied(store)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	fmt.Fprintf(b, "%s not asked for, because robots.txt says so. Some of them, and the line that decides:\n", were(n, "URL"))
	writeTable(b, rows)
	return nil
}

func (r *demoReport) denied(store *storage.Store) (rows [][]string, err error) {
	named := map[string]bool{}
	for _, never := range r.facts.Never {
		if named[never.Host] || len(rows) == maxDenied {
			continue
		}
		u, err := weburl.Parse(r.web.URL(never.Host, never.Path))
		if err != nil {
			return nil, err
		}
		head, _, err := store.Lookup(u)
		if errors.Is(err, storage.ErrNotFound) || err == nil && head.Last.State != storage.Denied {
			continue
		}
		if err != nil {
			return nil, err
		}
		line, err := robotsLine(store, u.Origin(), int(head.Last.Line))
		if err != nil {
			return nil, err
		}
		named[never.Host] = true
		rows = append(rows, []string{never.String(), line})
	}
	return rows, nil
}

// robotsLine is a line of the robots.txt that is kept of an origin.
func robotsLine(store *storage.Store, origin weburl.Origin, line int) (string, error) {
	encoded, err := store.Policy(origin)
	if err != nil {
		return "", err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return "", fmt.Errorf("robots.txt of %s: %w", origin, err)
	}
	return fmt.Sprintf("line %d: %s", line, printable(strings.TrimSpace(robots.LineText(record.Body, line)))), nil
}
