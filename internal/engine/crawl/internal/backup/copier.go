package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrSlowCopy says that whoever wanted a copy took it too slowly.
var ErrSlowCopy = errors.New("the copy of the database was taken too slowly")

// The pace at which a copy has to be taken that goes from the database straight to whoever wants it.
const (
	copyGrace = time.Minute // in which nothing is expected
	copyRate  = 32 << 20    // bytes a second, from then on
)

// Copier is a writer that fails when nobody wants the copy any more, or it has taken too long.
type Copier struct {
	Context context.Context // ends when nobody wants the copy
	Writer  io.Writer
	Failed  error        // of the last Write
	check   func() error // whether it may go on; nil: it may
}

// Limit sets the time in which a copy of a size has to be taken. The error of Write is ErrSlowCopy after that.
func (c *Copier) Limit(size int64, now func() time.Time) {
	within := copyGrace + time.Duration(size/copyRate)*time.Second
	until := now().Add(within)
	c.check = func() error {
		if !now().After(until) {
			return nil
		}
		return fmt.Errorf("%w: %d MiB have to be taken within %v, because data_dir has no room to copy them first; "+
			"make that room, or take the copy to a disk of this machine and send it from there",
			ErrSlowCopy, size>>20, within)
	}
}

// Write is part of io.Writer.
func (c *Copier) Write(p []byte) (n int, err error) {
	err = c.Context.Err()
	if err == nil && c.check != nil {
		err = c.check()
	}
	if err == nil {
		n, err = c.Writer.Write(p)
	}
	c.Failed = err
	return n, err
}
