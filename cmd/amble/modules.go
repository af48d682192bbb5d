//go:build !core

package main

// modules are the products in this program beside the core.
func modules() []module {
	signs := identityProgram()
	return []module{clusterModule(), fetchersModule(), fetchModule(), alarmsModule(), auditModule(), archiveModule(),
		erasureModule(), demoModule(), identityModule(signs), reportModule(signs)}
}
