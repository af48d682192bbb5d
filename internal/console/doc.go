// Package console is what the commands of a program have in common: numbers, times and tables as text for people, a
// block of lines on a terminal that shows progress, exit codes, signals, the log, and what a service manager is told.
package console
