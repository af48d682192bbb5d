//go:build !core

package archive

import (
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Unpack reads a file of lines with the compression of its name. release ends the reading.
func Unpack(r io.Reader, name string) (unpacked io.Reader, release func(), err error) {
	switch compressionOf(name) {
	case CompressGzip:
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case CompressZstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}

// PackerOf returns the packer of a file of lines by its name; nil: it is not compressed.
func PackerOf(name string) (Packer, error) {
	p, _, err := newPacker(compressionOf(name))
	return p, err
}

// compressionOf returns the compression of a file of lines by its name.
func compressionOf(name string) string {
	switch {
	case strings.HasSuffix(name, extensionGzip):
		return CompressGzip
	case strings.HasSuffix(name, extensionZstd):
		return CompressZstd
	}
	return CompressNone
}
