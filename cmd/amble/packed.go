package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// outFile is a file that takes its name when it is complete. It is packed as its name says: .gz, .zst.
type outFile struct {
	io.Writer
	name  string
	file  *os.File
	parts []io.Closer // what packs
	plain *bufio.Writer
}

func createOutFile(name string) (*outFile, error) {
	file, err := os.OpenFile(name+".partial", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	f := &outFile{name: name, file: file, plain: bufio.NewWriterSize(file, 1<<16)}
	f.Writer = f.plain
	switch {
	case strings.HasSuffix(name, ".gz"):
		packer := gzip.NewWriter(f.plain)
		f.Writer, f.parts = packer, []io.Closer{packer}
	case strings.HasSuffix(name, ".zst"), strings.HasSuffix(name, ".zstd"):
		packer, err := zstd.NewWriter(f.plain, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(err, f.drop())
		}
		f.Writer, f.parts = packer, []io.Closer{packer}
	}
	return f, nil
}

// finish completes the file and gives it its name; after an error, its own or the one given, there is none.
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
