package testweb

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Save writes the log to a file as JSON lines, one request each. It replaces an existing file.
func (l Log) Save(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("testweb: save record: %w", err)
	}
	buffered := bufio.NewWriter(f)
	encoder := json.NewEncoder(buffered)
	for _, q := range l {
		err = errors.Join(err, encoder.Encode(q))
	}
	if err = errors.Join(err, buffered.Flush(), f.Close()); err != nil {
		return fmt.Errorf("testweb: save record: %w", err)
	}
	return nil
}
