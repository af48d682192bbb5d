//go:build !core

package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/modules/alarms"
)

// alarmsModule says what needs somebody's attention. undelivered says which output file is not taken.
func alarmsModule(undelivered func() (string, bool)) module {
	w := alarms.NewWatch(undelivered)
	return module{operations: w.Register, watch: w.Observe, status: alarms.Status,
		collector: func(*config.Config) prometheus.Collector { return w },
		serve: func(ctx context.Context, k *crawling, _ *node.Node) (context.Context, func(), error) {
			w.Log(k.log)
			return ctx, func() {}, nil
		}}
}
