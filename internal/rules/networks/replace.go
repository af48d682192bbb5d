//go:build !core

package networks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/system"
)

// Replace makes the list of a file that of a data directory, and returns it. A list that cannot be
// read changes nothing.
func Replace(dir, from string) (*List, error) {
	l, err := Read(from)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o750), system.WriteFile(filepath.Join(dir, FileName), text))
	}
	if err != nil {
		return nil, fmt.Errorf("list of delivery networks: %w", err)
	}
	return l, nil
}

// String says what the list has, a network a line.
func (l *List) String() string {
	var b strings.Builder
	for _, n := range l.Networks {
		fmt.Fprintf(&b, "%s: %d ranges of %s, from %s\n", n.Name, n.Ranges, n.Date.Format(time.DateOnly), n.Source)
	}
	return b.String()
}
