//go:build !race

package crawl

const zooShrink = 1
