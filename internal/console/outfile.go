//go:build !core

package console

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// outFile is a file that gets its name when it is complete. It is compressed as its name says: .gz,
// .zst.
type outFile struct {
	io.Writer
	name  string
	file  *os.File
	parts []io.Closer // the compressors
	plain *bufio.Writer
}

func createOutFile(name string) (*outFile, error) {
	file, err := os.OpenFile(name+".partial", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	f := &outFile{name: name, file: file, plain: bufio.NewWriterSize(file, 1<<16)}
	f.Writer = f.plain
	switch compression(name) {
	case ".gz":
		packer := gzip.NewWriter(f.plain)
		f.Writer, f.parts = packer, []io.Closer{packer}
	case ".zst", ".zstd":
		packer, err := zstd.NewWriter(f.plain, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(err, f.drop())
		}
		f.Writer, f.parts = packer, []io.Closer{packer}
	}
	return f, nil
}

// compression returns the end of the name of a compressed file; empty: it is not compressed.
func compression(name string) string {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".gz", ".zst", ".zstd":
		return ext
	}
	return ""
}

// finish completes the file and gives it its name. After an error, its own or err, it removes the
// file.
func (f *outFile) finish(err error) error {
	if err != nil {
		return errors.Join(err, f.drop())
	}
	for _, p := range f.parts {
		err = errors.Join(err, p.Close())
	}
	if err = errors.Join(err, f.plain.Flush(), f.file.Sync()); err != nil {
		return errors.Join(err, f.drop())
	}
	if err := f.file.Close(); err != nil {
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	return os.Rename(f.file.Name(), f.name)
}

func (f *outFile) drop() error {
	return errors.Join(f.file.Close(), os.Remove(f.file.Name()))
}
