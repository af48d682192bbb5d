package storage

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestOffset(t *testing.T) {
	for _, offset := range []uint64{0, 1, 1 << 63} {
		assert.Returns(DecodeOffset(EncodeOffset(offset)))(t, offset, "offset comes back as")
	}
	assert.Returns(DecodeOffset(nil))(t, 0, "no mark is offset")
	for _, bad := range [][]byte{{1}, make([]byte, 9)} {
		assert.Fails(DecodeOffset(bad))(t, ErrCorrupt, "mark", bad)
	}
}
