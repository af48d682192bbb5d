package main

import (
	"fmt"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
)

// seedList are the seeds of a run.
type seedList struct {
	good []crawl.Seed
	bad  int
}

// readSeeds collects the seeds of the settings and of the arguments, and says of each bad one where it is and what is wrong. None
// that can be used, though some were given, is an error of usage.
func readSeeds(c *config.Config, arguments []string, complain func(string)) (seedList, error) {
	var list seedList
	config.VisitSeeds(c, arguments,
		func(s config.Seed) {
			list.good = append(list.good, crawl.Seed{URL: s.URL, Source: s.Source.String(), Priority: s.Priority})
		},
		func(b config.BadSeed) {
			list.bad++
			complain(b.String())
		})
	if list.bad > 0 && len(list.good) == 0 {
		return list, exit(exitUsage, fmt.Errorf("no seed can be used: %s", badSeeds(list.bad)))
	}
	return list, nil
}

func badSeeds(n int) string {
	if n == 1 {
		return "the only one given is bad, see above"
	}
	return "all " + grouped(n) + " are bad, see above"
}
