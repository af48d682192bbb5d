//go:build !core

package erase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Report says what an erasure has removed, or in a dry run what it would remove.
type Report struct {
	Name   string    `json:"name"`
	Below  bool      `json:"below"` // with all names below it
	At     time.Time `json:"at"`    // when it began
	DryRun bool      `json:"dry_run"`

	Database storage.Erased `json:"database"`
	Ledger   int            `json:"ledger_lines"`
	// Requests are the files of the request log that change, by name.
	Requests map[string]requestlog.Erased `json:"request_log"`
	Crashes  int                          `json:"crash_files"`
	// Output are the files of the output that change, by name; none unless the output was to be erased.
	Output map[string]archive.ErasedFile `json:"output"`

	// Unreadable are files of the output that are damaged and stay as they are, and why.
	Unreadable map[string]string `json:"unreadable"`
	// Mentions are files of the data directory in which the name still occurs, and how often: in
	// what is kept of others, or in files that are not the crawl's.
	Mentions map[string]int `json:"mentions"`
	// Crawls are the reports of other crawls of the same process, by their ids, that had something.
	Crawls map[string]*Report `json:"crawls,omitempty"`
}

// IsEmpty reports whether there was nothing to remove.
func (r *Report) IsEmpty() bool {
	return r.Database == storage.Erased{} && r.Ledger+r.Crashes == 0 && len(r.Requests)+len(r.Output)+len(r.Crawls) == 0
}

// LoggedRequests returns how many requests went from the request log.
func (r *Report) LoggedRequests() (n int) {
	for _, f := range r.Requests {
		n += f.Requests
	}
	return n
}

// Records returns how many records went from the output.
func (r *Report) Records() (n int) {
	for _, f := range r.Output {
		for _, count := range f.Records {
			n += count
		}
	}
	return n
}

// journal is an erasure that has not ended. It is a file while that is so.
type journal struct {
	Version int    `json:"version"`
	ID      string `json:"id"`     // of the erasure: see tombstones
	Output  string `json:"output"` // the output directory; empty: the output stays
	Report  Report `json:"report"`

	dir string
}

const journalVersion = 1

func (j *journal) names() weburl.Names {
	return weburl.Names{Name: j.Report.Name, Below: j.Report.Below}
}

func journalPath(dir string) string { return filepath.Join(dir, crawl.ErasureFile) }

// save makes the journal durable.
func (j *journal) save() error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err == nil {
		err = system.WriteFile(journalPath(j.dir), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("note the erasure: %w", err)
	}
	return nil
}

// openJournal returns the journal of a data directory; nil: there is none.
func openJournal(dir string) (*journal, error) {
	text, err := os.ReadFile(journalPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	j := &journal{dir: dir}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err == nil && (j.Version != journalVersion || j.Report.Name == "") {
		err = fmt.Errorf("version %d is not of this amble", j.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", journalPath(dir), err)
	}
	j.Report.fill()
	return j, nil
}

func (r *Report) fill() {
	if r.Requests == nil {
		r.Requests = make(map[string]requestlog.Erased)
	}
	if r.Output == nil {
		r.Output = make(map[string]archive.ErasedFile)
	}
	r.Unreadable, r.Mentions = make(map[string]string), make(map[string]int)
}

// remove ends the erasure.
func (j *journal) remove() error {
	if err := os.Remove(journalPath(j.dir)); err != nil {
		return fmt.Errorf("end the erasure: %w", err)
	}
	return system.SyncDir(j.dir)
}
