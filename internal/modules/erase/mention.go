//go:build !core

package erase

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// windowBytes is how much of a file is searched at a time. A name that begins in one window, and ends
// in the next, is found because windows overlap by more than the longest name.
const (
	windowBytes  = 1 << 20
	overlapBytes = 1 << 10
)

// countNames returns how often a file names hosts of a set, in either order of their labels.
func countNames(path string, names weburl.Names) (count int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("look for %s: %w", names.Name, err)
	}
	defer f.Close()
	reversed := weburl.ReverseHost(names.Name)
	countIn := func(text []byte) int {
		n := names.Count(text)
		if reversed != names.Name {
			n += weburl.Names{Name: reversed}.Count(text)
		}
		if names.Below {
			n += bytes.Count(text, []byte(reversed+"."))
		}
		return n
	}
	window := make([]byte, 0, windowBytes)
	for {
		n, err := io.ReadFull(f, window[len(window):cap(window)])
		window = window[:len(window)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return count, fmt.Errorf("look for %s: %w", names.Name, err)
		}
		count += countIn(window)
		if last {
			return count, nil
		}
		rest := window[len(window)-overlapBytes:]
		count -= countIn(rest) // they are counted again
		window = append(window[:0], rest...)
	}
}
