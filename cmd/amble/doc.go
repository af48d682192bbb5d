// Amble is a polite crawler. Each command is in a file of its own; root.go lists them and exit.go says how their errors
// become exit codes. Commands read their input through cobra's streams, so that all of them run in the test scripts
// under testdata/script as a user would run them.
package main
