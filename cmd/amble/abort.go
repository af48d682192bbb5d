package main

import "runtime/debug"

// abortOnCrash makes a crash of the program end it by SIGABRT, which every supervisor tells from an
// exit code. Go's runtime would exit with 2, which is that of wrong settings: a service is not
// started again then. What is in the memory is not dumped: that may be secret.
func abortOnCrash() {
	debug.SetTraceback("crash")
	forbidDump()
}
