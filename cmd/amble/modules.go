//go:build !core

package main

// modules are the products in this program beside the core.
func modules() []module {
	signs := identityProgram()
	onComplete, undelivered := onCompleteModule()
	return []module{clusterModule(), fetchersModule(), fetchModule(), alarmsModule(undelivered), auditModule(),
		archiveModule(), erasureModule(), demoModule(), identityModule(signs), reportModule(signs), onComplete}
}
