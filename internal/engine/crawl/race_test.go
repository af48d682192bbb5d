//go:build race

package crawl

// zooShrink is what the sizes of hostile pages are divided by: the race detector makes everything
// several times as slow, and it is not size that it looks for. Without it the pages have their full
// size.
const zooShrink = 4
