// Command crawlcheck grades the manners of a crawler, judged at the server. docs/CONFORMANCE.md says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// The exit codes.
const (
	exitHold   = 0 // all musts hold
	exitBroken = 1
	exitUsage  = 2
	exitNotRun = 3 // the crawler did not run
)

const usage = `crawlcheck grades the manners of a crawler. It serves a small web on this machine, runs the crawler on
it, and judges from the requests that the web has got.

    crawlcheck [flags] -- COMMAND ARGUMENT...     run a crawler, and judge it
    crawlcheck serve [flags]                      serve the web until Ctrl-C, for a crawler started by hand
    crawlcheck compare REPORT.json...             print reports side by side, as a table in Markdown
    crawlcheck --list                             say what is judged, and by which sentence

In the arguments of the command stand for something:
    {seed}      the URL of a page that links to all stations
    {seeds}     as an argument of its own: the URLs of the first pages of all stations
    {seedfile}  a file with these URLs, one a line
    {proxy}     the URL of the web's HTTP proxy, with --proxy
    {resolver}  HOST:PORT of the web's DNS server, with --names
    {ca}        the file with the certificate of the web's authority, with --https
    {dir}       an empty directory, which is removed after the run

For example:
    crawlcheck -- wget --recursive --no-verbose --directory-prefix={dir} {seed}
    crawlcheck --proxy --html report.html -- mycrawler --hosts any --seeds {seedfile}

Exit codes: 0 all musts hold; 1 some do not hold or were not shown; 2 wrong usage; 3 the crawler did not run.

Flags:
`

// options are the flags.
type options struct {
	crawlcheck.Options
	list, names, addresses, verbose bool
	timeout, quiet                  time.Duration
	settings                        string
	files                           map[string]*string // by form
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, messages io.Writer) int {
	if len(args) > 0 && args[0] == "compare" {
		return compare(args[1:], out, messages)
	}
	serve := len(args) > 0 && args[0] == "serve"
	if serve {
		args = args[1:]
	}
	o, command, err := parse(args, out, messages)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitHold
	case err == nil && !o.list && serve == (len(command) > 0):
		err = errors.New("it needs a command after --, or the word serve and no command; see crawlcheck --help")
	}
	if err != nil {
		fmt.Fprintln(messages, "crawlcheck:", err)
		return exitUsage
	}
	if o.list {
		list(out)
		return exitHold
	}
	lab, err := crawlcheck.New(o.Options)
	if err != nil {
		fmt.Fprintln(messages, "crawlcheck:", err)
		return exitUsage
	}
	defer lab.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if serve {
		return o.serve(ctx, lab, out, messages)
	}
	return o.grade(ctx, lab, command, out, messages)
}

// parse reads the flags. What follows them is the command.
func parse(args []string, out, messages io.Writer) (o options, command []string, err error) {
	f := flag.NewFlagSet("crawlcheck", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.list, "list", false, "list the stations")
	f.StringVar(&o.Only, "only", "", "run the stations of this `pattern` alone, as robots-*; several with commas; "+
		"!traps-* leaves some out")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that decides paths, texts and the order of links")
	f.DurationVar(&o.timeout, "timeout", 3*time.Minute, "longest `time` of a run")
	f.DurationVar(&o.quiet, "quiet", 30*time.Second, "end the run if there is no request for this `time`")
	f.StringVar(&o.settings, "settings", "", "a `name` for the settings of the crawler, for the report")
	f.StringVar(&o.Token, "token", "", "the crawler's product `token`; by default that of its User-Agent")
	f.BoolVar(&o.Kill, "kill", false, "kill the crawler in the middle, run the command again, judge the restart too")
	f.BoolVar(&o.Proxy, "proxy", false, "hosts have names, and HTTP_PROXY of the command names a proxy that knows them")
	f.BoolVar(&o.names, "names", false, "hosts have names, which the DNS server {resolver} knows")
	f.BoolVar(&o.addresses, "addresses", false, "hosts are addresses of 127.0.0.0/8 (Linux), not ports")
	f.BoolVar(&o.HTTPS, "https", false, "a host has https too, whose authority {ca} the environment names as well")
	f.BoolVar(&o.verbose, "verbose", false, "show what the crawler prints")
	o.files = make(map[string]*string)
	for _, form := range []string{"json", "junit", "html", "badge"} {
		o.files[form] = f.String(form, "", "write the report as "+strings.ToUpper(form)+" to a `file`; - is the output")
	}
	if err = f.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
	}
	switch {
	case err != nil:
	case o.Proxy && o.names || o.Proxy && o.addresses || o.names && o.addresses:
		err = errors.New("--proxy, --names and --addresses exclude each other")
	case o.timeout <= 0 || o.quiet <= 0:
		err = errors.New("--timeout and --quiet have to be more than 0")
	}
	o.Reach = testweb.ByPort
	if o.Proxy || o.names {
		o.Reach = testweb.ByName
	} else if o.addresses {
		o.Reach = testweb.ByAddress
	}
	return o, f.Args(), err
}

// list prints what is judged.
func list(out io.Writer) {
	for _, s := range crawlcheck.Stations() {
		fmt.Fprintf(out, "%s (%s)\n    %s\n    %s\n", s.Name, s.Level, s.Rule, s.Source)
	}
}

// serve serves the web until it is interrupted.
func (o *options) serve(ctx context.Context, lab *crawlcheck.Lab, out, messages io.Writer) int {
	fmt.Fprintf(out, "Start at     %s\n", lab.Start())
	if o.Proxy {
		fmt.Fprintf(out, "HTTP proxy   %s\n", lab.Web.Proxy())
	}
	if o.names {
		fmt.Fprintf(out, "DNS server   %s\n", lab.Web.ResolverAddr())
	}
	fmt.Fprintf(out, "Seeds        %s\nCtrl-C ends it, and judges.\n", strings.Join(lab.Homes(), " "))
	<-ctx.Done()
	if lab.Web.Served() == 0 {
		fmt.Fprintln(messages, "crawlcheck: there was no request")
		return exitNotRun
	}
	return o.report(lab, crawlcheck.Run{Ended: "it was interrupted", Settings: o.settings}, out, messages)
}

// grade runs a command, and judges it.
func (o *options) grade(ctx context.Context, lab *crawlcheck.Lab, args []string, out, messages io.Writer) int {
	dir, err := os.MkdirTemp("", "crawlcheck-")
	if err != nil {
		fmt.Fprintln(messages, "crawlcheck:", err)
		return exitUsage
	}
	defer os.RemoveAll(dir)
	c := crawlcheck.Command{
		Args: args, Settings: o.settings, Proxy: o.Proxy, HTTPS: o.HTTPS, Kill: o.Kill, Timeout: o.timeout,
		Quiet: o.quiet, Dir: dir,
		Progress: func(text string) { fmt.Fprintln(messages, text) },
	}
	if o.verbose {
		c.Output = messages
	}
	r, err := lab.Run(ctx, c)
	switch {
	case errors.Is(err, crawlcheck.ErrNotStarted):
		fmt.Fprintf(messages, "crawlcheck: %v; --verbose shows what it prints\n", err)
		return exitNotRun
	case err != nil:
		fmt.Fprintln(messages, "crawlcheck:", err)
		return exitUsage
	}
	return o.report(lab, r, out, messages)
}

// report writes the report in all forms that are wanted.
func (o *options) report(lab *crawlcheck.Lab, r crawlcheck.Run, out, messages io.Writer) int {
	report := lab.Report(r)
	writers := map[string]func(io.Writer) error{
		"json": report.WriteJSON, "junit": report.WriteJUnit, "html": report.WriteHTML, "badge": report.WriteBadge,
	}
	table, failed := true, false
	for form, file := range o.files {
		if *file == "" {
			continue
		}
		table = table && *file != "-"
		if err := write(*file, out, writers[form]); err != nil {
			fmt.Fprintln(messages, "crawlcheck:", err)
			failed = true
		}
	}
	if table {
		failed = report.WriteText(out) != nil || failed
	}
	switch {
	case failed:
		return exitUsage
	case !report.MustsHold():
		return exitBroken
	}
	return exitHold
}

func write(file string, out io.Writer, form func(io.Writer) error) error {
	if file == "-" {
		return form(out)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(form(f), f.Close())
}
