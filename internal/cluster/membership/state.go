package membership

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/records/wire"
)

// stateFile notes the newest membership of the processes that use it, one after the other. A process
// that has the lock of the file knows that the earlier ones have ended, so it need not wait until
// their membership is over. This holds for the very file and for one run of the machine: what is in
// a copy may belong to a process that still runs elsewhere.
type stateFile struct {
	f           *os.File // nil: nothing is noted
	predecessor cluster.Sequence
	noted       cluster.Sequence
	saved       cluster.Sequence
}

// stateVersion is the version of the file.
const stateVersion = 1

// openState opens the file, or nothing if the path is empty.
func openState(path string) (*stateFile, error) {
	if path == "" {
		return &stateFile{}, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state of the node: %w", err)
	}
	if !lock(f) {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	s := &stateFile{f: f}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("read the state of the node: %w", err)
	}
	boot, inode, device := identity(f)
	if incarnation, err := decodeState(b, boot, inode, device); err == nil && boot != "" {
		s.predecessor, s.saved = incarnation, incarnation
	}
	return s, nil
}

func encodeState(incarnation cluster.Sequence, boot string, inode, device uint64) []byte {
	b := appendText([]byte{stateVersion}, boot)
	b = binary.BigEndian.AppendUint64(b, inode)
	b = binary.BigEndian.AppendUint64(b, device)
	return binary.BigEndian.AppendUint64(b, uint64(incarnation))
}

// decodeState returns the membership in a file, if it was written to this very file.
func decodeState(b []byte, boot string, inode, device uint64) (incarnation cluster.Sequence, err error) {
	d := wire.NewDecoder(b)
	d.Require(d.Byte() == stateVersion)
	d.Require(readText(&d, 64) == boot)
	d.Require(d.Uint64() == inode)
	d.Require(d.Uint64() == device)
	incarnation = cluster.Sequence(d.Uint64())
	return incarnation, d.End()
}

// note remembers a membership; 0 is none.
func (s *stateFile) note(incarnation cluster.Sequence) { s.noted = max(s.noted, incarnation) }

// save writes the newest membership if it is not in the file. It is not synced: after a restart of the
// machine the file says nothing.
func (s *stateFile) save() error {
	if s.f == nil || s.noted <= s.saved {
		return nil
	}
	boot, inode, device := identity(s.f)
	if boot == "" {
		s.saved = s.noted
		return nil
	}
	_, err := s.f.WriteAt(encodeState(s.noted, boot, inode, device), 0)
	if err == nil {
		s.saved = s.noted
	}
	return err
}

// close ends the lock.
func (s *stateFile) close() {
	if s.f != nil {
		_ = s.f.Close()
	}
}
