package testweb

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// WriteTo writes the log as JSON lines, one request each.
func (l Log) WriteTo(w io.Writer) (int64, error) {
	counter := &countingWriter{w: w}
	buffered := bufio.NewWriter(counter)
	encoder := json.NewEncoder(buffered)
	for _, q := range l {
		if err := encoder.Encode(q); err != nil {
			return counter.n, err
		}
	}
	err := buffered.Flush()
	return counter.n, err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// Save writes the log to a file as JSON lines, for another process to Load. It replaces an existing
// file.
func (l Log) Save(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("testweb: save record: %w", err)
	}
	_, err = l.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("testweb: save record: %w", err)
	}
	return nil
}

// Load reads a log that Save wrote.
func Load(path string) (Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("testweb: load record: %w", err)
	}
	defer f.Close()
	var log Log
	for decoder := json.NewDecoder(bufio.NewReader(f)); ; {
		var q Request
		if err := decoder.Decode(&q); errors.Is(err, io.EOF) {
			log.sort()
			return log, nil
		} else if err != nil {
			return nil, fmt.Errorf("testweb: load record %s: request %d: %w", path, len(log)+1, err)
		}
		log = append(log, q)
	}
}
