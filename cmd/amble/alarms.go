//go:build !core

package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/alarms"
)

// alarmsModule says what needs somebody's attention. undelivered says which output is not taken; notify is told of each
// alarm that begins or ends.
func alarmsModule(notify func(id string, alarm any, ended bool), undelivered func() (string, bool)) module {
	w := alarms.NewWatch(undelivered)
	w.Notify(func(a *alarms.Alarm, ended bool) { notify(a.ID(), a, ended) })
	return module{operations: w.Register, watch: w.Observe,
		amend: func(_ *crawling, o *crawl.Options) error {
			w.MinFree(o.MinFree)
			return nil
		},
		collector: func(*config.Config) prometheus.Collector { return w },
		serve: func(ctx context.Context, k *crawling) (context.Context, func(), error) {
			w.Log(k.log)
			return ctx, func() {}, nil
		}}
}
