//go:build !core

package main

import (
	"github.com/amble-crawler/amble/internal/modules/alarms"
	"github.com/amble-crawler/amble/internal/modules/operator"
	"github.com/amble-crawler/amble/internal/modules/warc/completeness"
	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/output/delivery"
)

// modules are the products in this program beside the core.
func modules() []module {
	signs := identityProgram()
	onComplete, files := onCompleteModule()
	posted := new(webhook.Alarms)
	results, posts := webhookModule(posted)
	parts := operator.Parts{
		Status:  []operator.StatusRows{alarms.Status, signs.Status},
		OfURL:   completeness.OfURL,
		Formats: []operator.ListFormat{frontierFormat()}, Page: archivedPage,
	}
	return append(operatorModules(parts), planModule(), clusterModule(), fetchersModule(), fetchModule(),
		alarmsModule(posted.Add, delivery.Trouble(files, posts)), auditModule(), archiveModule(), erasureModule(),
		demoModule(), identityModule(signs), reportModule(signs), onComplete, results)
}
