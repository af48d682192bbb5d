//go:build core

package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Leases is empty: this program lends no pages to fetchers outside of it.
type Leases any

// leasesAPI registers nothing.
func leasesAPI(*Server, huma.API) {}

func statusOfLending(error) int { return http.StatusInternalServerError }

func (*statusCollector) collectFetchers(chan<- prometheus.Metric, []crawl.Fetcher) {}
