// Amble is a polite crawler. A command is in the file of its name; root.go lists them and exit.go
// says how their errors become exit codes. Commands read their input through cobra's streams, so
// that all of them run in the test scripts under testdata/script as a user would run them.
package main

import (
	"io"
	"os"

	"github.com/amble-crawler/amble/internal/console"

	_ "time/tzdata" // for politeness.time_zone on machines without a time zone database
)

// version is set by the linker: -ldflags '-X main.version=1.2.3'. If it is empty, see
// programVersion.
var version string

func main() {
	abortOnCrash()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(&console.PlainWriter{W: stdout})
	root.SetErr(&console.PlainWriter{W: stderr})
	command, err := root.ExecuteC()
	return report(command, err)
}
