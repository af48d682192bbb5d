package lookup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FileName is the file, in the directory of the keys, with all that sites asked for by the look-up: a JSON object a
// line, only appended to.
const FileName = "asked.jsonl"

// The actions of a site.
const (
	ActionSlow   = "slow"   // a longer delay
	ActionUsual  = "usual"  // the end of ActionSlow
	ActionStop   = "stop"   // no request at all
	ActionErase  = "erase"  // ActionStop, and the operator of the crawler erases what is kept
	ActionResume = "resume" // the end of ActionStop or ActionErase
)

// Asked is what the operator of a site asked for.
type Asked struct {
	At     time.Time `json:"at"`
	Host   string    `json:"host"`
	Action string    `json:"action"`
	Delay  float64   `json:"delay_seconds,omitempty"`  // of ActionSlow
	Before float64   `json:"before_seconds,omitempty"` // the delay that a command had set until then
	Closed bool      `json:"closed_before,omitempty"`  // others had stopped requests to the host before
	Proof  string    `json:"proof"`                    // by what the host proved itself
	Client string    `json:"client"`                   // address that it came from
}

// wishes are those in force for a host; nil: none.
type wishes struct{ slow, stop *Asked }

// journal is the file, and what is in force of it. Any goroutine may use it.
type journal struct {
	path string

	mu    sync.Mutex
	hosts map[string]wishes
	cut   bool // a crash cut off the last line of the file
}

// openJournal reads what was asked for. The file need not exist.
func openJournal(path string) (*journal, error) {
	j := &journal{path: path, hosts: make(map[string]wishes)}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("what sites asked for: %w", err)
	}
	j.cut = len(content) > 0 && !bytes.HasSuffix(content, []byte{'\n'})
	for line := range bytes.Lines(content) {
		var a Asked
		if json.Unmarshal(line, &a) == nil { // a crash may have cut off a line
			j.note(&a)
		}
	}
	return j, nil
}

func (j *journal) note(a *Asked) {
	w := j.hosts[a.Host]
	switch a.Action {
	case ActionSlow:
		w.slow = a
	case ActionUsual:
		w.slow = nil
	case ActionStop, ActionErase:
		w.stop = a
	case ActionResume:
		w.stop = nil
	}
	if j.hosts[a.Host] = w; w == (wishes{}) {
		delete(j.hosts, a.Host)
	}
}

// of returns what is in force for a host.
func (j *journal) of(host string) wishes {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.hosts[host]
}

// add appends a wish. It is on disk when add returns nil.
func (j *journal) add(a Asked) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	line, err := json.Marshal(a)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(j.path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("what a site asked for: %w", err)
	}
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("what a site asked for: %w", err)
	}
	if line = append(line, '\n'); j.cut {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(line)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("what a site asked for: %w", err)
	}
	j.cut = false
	j.note(&a)
	return nil
}
