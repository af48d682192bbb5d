// Package crawlcheck is a conformance suite for crawlers. It serves a web on loopback addresses whose
// hosts are stations, each with one rule of good manners, and judges a crawler from the web's own record
// of requests. It knows no crawler, and nothing of how one works inside.
//
// New starts the web, Run runs a crawler's command against it, and Lab.Report judges. A verdict needs
// evidence: a station with too few requests is "not shown", never "holds". docs/CONFORMANCE.md
// says how to use it.
package crawlcheck
