package config

import (
	"fmt"

	"github.com/amble-crawler/amble/politeness"
)

// hours returns the hours at which hosts without an override are fetched from; nil: all of them.
// Load has checked them.
func (p *Politeness) hours() *politeness.Hours {
	hours, _ := politeness.NewHours(p.TimeZone, p.Hours, "politeness.hours")
	return hours
}

// hours returns the hours of an override, which is item number n; general are those of other hosts.
func (o *Override) hours(p *Politeness, general *politeness.Hours, n int) *politeness.Hours {
	if o.Hours == nil {
		return general
	}
	hours, _ := politeness.NewHours(p.TimeZone, o.Hours, fmt.Sprintf("politeness.overrides, item %d", n))
	return hours
}

// hours checks the hours and their time zone.
func (k *checker) hours() {
	p := &k.c.Politeness
	if _, err := politeness.NewHours(p.TimeZone, nil, ""); err != nil {
		k.reject("politeness.time_zone", "want a name of the IANA time zone database, such as UTC or Europe/Berlin")
	}
	checkHours(p.Hours, func(i int, item, message string) { k.rejectItem("politeness.hours", i, item, message) })
}

// checkHours rejects items of a list of hours.
func checkHours(items []string, reject func(i int, item, message string)) {
	if len(items) > politeness.MaxHours {
		reject(politeness.MaxHours, items[politeness.MaxHours],
			fmt.Sprintf("want at most %d items", politeness.MaxHours))
		return
	}
	for i, item := range items {
		if _, err := politeness.NewHours("", []string{item}, ""); err != nil {
			reject(i, item,
				"want a time of the day such as 22:00-06:00, days such as mon-fri or sat,sun before it, or days alone")
		}
	}
}
