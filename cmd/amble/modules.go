//go:build !core

package main

// modules are the products in this program beside the core.
func modules() []module {
	return []module{clusterModule(), fetchersModule(), fetchModule(), auditModule(), archiveModule(), erasureModule(),
		demoModule(), identityModule()}
}
