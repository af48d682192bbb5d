//go:build !core

package outcome

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// RequisiteRows are the rows of a status about what pages are made of.
func RequisiteRows(s crawl.Status) [][]string {
	r := s.Requisites
	if r == nil {
		return nil
	}
	takes := ""
	if s.RequisitesFinish > 0 {
		takes = ", which takes " + console.Span(time.Duration(s.RequisitesFinish*float64(time.Second)))
	}
	return [][]string{{"requisites", console.Grouped(r["fetched"]), fmt.Sprintf(
		"of these URLs are what pages are made of; %s wait%s, %s are missing",
		console.Grouped(r["queued"]+r["retrying"]), takes, console.Grouped(r["failed"]+r["denied"]+r["excluded"]))}}
}
