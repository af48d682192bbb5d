//go:build !core

package erase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/system"
)

// TombstoneFile is the name of the file in the output directory that says how much was erased from
// which file, and when. It does not name the host.
const TombstoneFile = "erasures.jsonl"

// tombstone is a line of that file.
type tombstone struct {
	Version int            `json:"version"`
	Erasure string         `json:"erasure"` // the same in all lines of one erasure
	At      time.Time      `json:"at"`
	File    string         `json:"file"`
	Records map[string]int `json:"records"` // by WARC type, or by format for lines
	Bytes   int64          `json:"bytes"`   // by which the file is shorter
}

// tombstones adds what was erased from the output, once.
func (w *work) tombstones(context.Context) error {
	if len(w.j.Report.Output) == 0 {
		return nil
	}
	path := filepath.Join(w.j.Output, TombstoneFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("note what was erased: %w", err)
	}
	if bytes.Contains(text, []byte(`"`+w.j.ID+`"`)) { // interrupted behind this step
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.j.Report.Output)) {
		f := w.j.Report.Output[name]
		line, err := json.Marshal(tombstone{1, w.j.ID, w.j.Report.At, f.File, f.Records, f.Bytes})
		if err != nil {
			return fmt.Errorf("note what was erased: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := system.WriteFile(path, text); err != nil {
		return fmt.Errorf("note what was erased: %w", err)
	}
	return nil
}
