//go:build !core

package main

import (
	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/output/delivery"
)

// modules are the products in this program beside the core.
func modules() []module {
	signs := identityProgram()
	onComplete, files := onCompleteModule()
	alarms := new(webhook.Alarms)
	results, posts := webhookModule(alarms)
	return []module{clusterModule(), fetchersModule(), fetchModule(),
		alarmsModule(alarms.Add, delivery.Trouble(files, posts)), auditModule(), archiveModule(), erasureModule(),
		demoModule(), identityModule(signs), reportModule(signs), onComplete, results}
}
