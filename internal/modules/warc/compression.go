package warc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The formats of compressed records, Compression.Format.
const (
	FormatGzip = "gzip" // a gzip member for each record: annex D of the standard
	FormatZstd = "zstd" // a Zstandard frame for each: "Zstandard Compression for WARC Files 1.0" of the IIPC
)

// The extensions of the names of files.
const (
	extensionGzip = ".warc.gz"
	extensionZstd = ".warc.zst"
)

// ErrCompression means that records cannot be compressed as wanted.
var ErrCompression = errors.New("warc: bad compression")

// Compression says how the records of a file are compressed.
type Compression struct {
	// Format is FormatGzip or FormatZstd.
	Format string
	// Level is 1 (fast) to [MaxLevel] of the format (small). At level 1 records below 1.5 KiB are
	// stored without compression, unless there is a dictionary.
	Level int
	// Dictionary is a dictionary in the format of Zstandard, as "zstd --train" makes it, for
	// FormatZstd. Each file begins with it. Nil: none.
	Dictionary []byte
}

// MaxLevel returns the highest level of a format: 9 of gzip, 4 of zstd. It is 0 if the format is
// unknown.
func MaxLevel(format string) int {
	switch format {
	case FormatGzip:
		return 9
	case FormatZstd:
		return int(zstd.SpeedBestCompression)
	}
	return 0
}

// Validate returns an error that wraps [ErrCompression] if a field cannot be used, or nil.
func (c Compression) Validate() error {
	most := MaxLevel(c.Format)
	switch {
	case most == 0:
		return fmt.Errorf("%w: format %q, allowed are %s and %s", ErrCompression, c.Format, FormatGzip, FormatZstd)
	case c.Level < 1 || c.Level > most:
		return fmt.Errorf("%w: %s level %d, allowed are 1 to %d", ErrCompression, c.Format, c.Level, most)
	case c.Dictionary == nil:
		return nil
	case c.Format != FormatZstd:
		return fmt.Errorf("%w: a dictionary is for %s, not for %s", ErrCompression, FormatZstd, c.Format)
	case len(c.Dictionary) > maxDictionary:
		return fmt.Errorf("%w: the dictionary has %d bytes, allowed are %d", ErrCompression, len(c.Dictionary),
			maxDictionary)
	}
	if _, err := zstd.InspectDictionary(c.Dictionary); err != nil {
		return fmt.Errorf(`%w: not a Zstandard dictionary (make one with "zstd --train"): %w`, ErrCompression, err)
	}
	return nil
}

// Extension returns the extension of the names of files: ".warc.gz" or ".warc.zst".
func (c Compression) Extension() string {
	if c.Format == FormatZstd {
		return extensionZstd
	}
	return extensionGzip
}

// Base returns the name of a file without its extension. It is not ok if the name has none of
// [Compression.Extension].
func Base(name string) (base string, ok bool) {
	if base, ok = strings.CutSuffix(name, extensionGzip); ok {
		return base, true
	}
	return strings.CutSuffix(name, extensionZstd)
}

// Start returns what a file begins with, before its first record: the dictionary in a skippable
// frame. It is empty if there is none.
func (c Compression) Start() []byte {
	if c.Dictionary == nil {
		return nil
	}
	b := binary.LittleEndian.AppendUint32(nil, dictionaryMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Dictionary)))
	return append(b, c.Dictionary...)
}
