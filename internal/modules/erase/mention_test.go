package erase

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// TestCountNames counts names at every offset around the end of a window, in both orders of labels.
func TestCountNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	names := weburl.Names{Name: "www.zebra.test", Below: true}
	for _, text := range []string{"http://www.zebra.test/", "\x00test.zebra.www\x00", " test.zebra.www.below\x01",
		"A.WWW.Zebra.TEST"} {
		for _, at := range []int{0, windowBytes - 30, windowBytes - 17, windowBytes - 8, windowBytes - 1, windowBytes,
			windowBytes - overlapBytes - 9, windowBytes - overlapBytes, 2*windowBytes - overlapBytes - 9} {
			content := bytes.Repeat([]byte{0}, 3*windowBytes)
			copy(content[at:], text)
			must.Do(t, os.WriteFile(path, content, 0o600))
			assert.Returns(countNames(path, names))(t, 1, text, "at", at, "counted times")
		}
	}
	must.Do(t, os.WriteFile(path, []byte("www.zebra.tests xwww.zebra.test.example"), 0o600))
	assert.Returns(countNames(path, names))(t, 0, "other names are counted times")
}
