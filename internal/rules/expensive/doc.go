// Package expensive knows the URLs that cost a server much and show little that is new: the diffs,
// blames, archives and pinned trees of forges, the old versions and special pages of wikis, the
// orders and filters of shops. The forms are data with sources, in endpoints.txt.
//
// A form that is the product's own counts by itself. One that ordinary pages elsewhere have too counts
// for links on a page that has a mark of the product: its generator, or a cookie.
//
// The package is pure: no clock, no goroutine, no network.
package expensive
