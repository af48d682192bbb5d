package storage

import (
	"errors"
	"testing"
)

func TestOffset(t *testing.T) {
	for _, offset := range []uint64{0, 1, 1 << 63} {
		if got, err := DecodeOffset(EncodeOffset(offset)); err != nil || got != offset {
			t.Errorf("offset %d comes back as %d, %v", offset, got, err)
		}
	}
	if got, err := DecodeOffset(nil); err != nil || got != 0 {
		t.Errorf("no mark is offset %d, %v", got, err)
	}
	for _, bad := range [][]byte{{1}, make([]byte, 9)} {
		if _, err := DecodeOffset(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("mark %x: %v", bad, err)
		}
	}
}
