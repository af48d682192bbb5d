// Package seeds is about the URLs that a crawl starts from: what may be said of each, how they are written, and which
// URLs belong to which seed. It is pure: no clock, no network, no file.
//
// The seed of a page is a function of its URL and of the seeds in force: the nearest seed whose scope the URL is in. So
// it does not depend on the order in which pages are fetched, nor on when the seed was added. Only a URL in the scope
// of no seed, or of a seed whose scope has no bounds, belongs to the seed of the page that it was found on first.
package seeds
