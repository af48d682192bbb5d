//go:build !core

package oncomplete

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/amble-crawler/amble/internal/system"
)

// JournalFile is the name of the journal in the data directory.
const JournalFile = "on_complete.jsonl"

// done is a line of the journal: a file that the command has taken. A file of the same name that differs in size or
// time is another one: an erasure has changed it.
type done struct {
	File   string `json:"file"`
	Size   int64  `json:"size"`
	Time   int64  `json:"time"` // of its last change, in Unix nanoseconds
	SHA256 string `json:"sha256"`
}

// journal has the files that the command has taken.
type journal struct {
	path  string
	taken map[string]done
	file  *os.File
}

// openJournal reads the journal, and drops what is said of files that are gone. A line that a crash cut is no line.
func openJournal(path string) (*journal, error) {
	j := &journal{path: path, taken: make(map[string]done)}
	text, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("open the journal of output.on_complete: %w", err)
	default:
		lines := bufio.NewScanner(text)
		for lines.Scan() {
			var d done
			if json.Unmarshal(lines.Bytes(), &d) != nil {
				continue
			}
			if _, err := os.Stat(d.File); err == nil {
				j.taken[d.File] = d
			}
		}
		if err := errors.Join(lines.Err(), text.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return j, j.rewrite()
}

// rewrite replaces the journal by what is known, and opens it to go on.
func (j *journal) rewrite() error {
	var text []byte
	for _, d := range j.taken {
		line, err := d.line()
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	err := system.WriteFile(j.path, text)
	if err == nil {
		j.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return fmt.Errorf("write the journal of output.on_complete: %w", err)
	}
	return nil
}

func (d done) line() ([]byte, error) {
	line, err := json.Marshal(d)
	return append(line, '\n'), err
}

// has reports whether the command has taken a file as it is.
func (j *journal) has(file string, info fs.FileInfo) bool {
	d, known := j.taken[file]
	return known && d.Size == info.Size() && d.Time == info.ModTime().UnixNano()
}

// add writes that the command has taken a file. It is on disk when add returns.
func (j *journal) add(d done) error {
	line, err := d.line()
	if err == nil {
		_, err = j.file.Write(line)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", j.path, err)
	}
	j.taken[d.File] = d
	return nil
}
