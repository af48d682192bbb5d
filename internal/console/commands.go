//go:build !core

package console

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/engine/sweep"
)

// Exactly requires n arguments; names says what they are.
func Exactly(n int, names string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef("%q takes %s, and %d were given", command.CommandPath(), names, len(args))
		}
		return nil
	}
}

// Offer completes a flag with fixed values.
func Offer(command *cobra.Command, flag string, values []string) {
	Complete(command, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// AtMostOne allows at most one argument; what says what it is.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usagef("%q takes one %s at most, and %d were given", command.CommandPath(), what, len(args))
		}
		return nil
	}
}

// RetryProgress returns a function that reports at intervals how many URLs are put back, or left out.
func RetryProgress(w io.Writer, clock func() time.Time) func(sweep.Retried) error {
	reported := clock()
	return func(p sweep.Retried) error {
		if now := clock(); now.Sub(reported) >= LogEvery {
			reported = now
			fmt.Fprintf(w, "%s inspected, %s so far\n", Plural(p.Inspected, "URL"), Grouped(p.Back+p.Dropped))
		}
		return nil
	}
}

// UntilInterrupted returns a context that the first SIGINT or SIGTERM ends, for commands that
// report their progress then. A second later the signals have their default handling again.
func UntilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameWish, stop) })
	return ctx, stop
}

// UntilDone reads until its context ends, even while a read blocks: that read goes on in its
// goroutine.
type UntilDone struct {
	ctx context.Context
	r   io.Reader
}

// NewUntilDone returns a reader of r that ends with ctx.
func NewUntilDone(ctx context.Context, r io.Reader) *UntilDone { return &UntilDone{ctx, r} }

// Read implements io.Reader.
func (u *UntilDone) Read(piece []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		piece []byte
		err   error
	}
	done := make(chan result, 1)
	go func() {
		own := make([]byte, len(piece))
		n, err := u.r.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case r := <-done:
		return copy(piece, r.piece), r.err
	case <-u.ctx.Done():
		return 0, u.ctx.Err()
	}
}

// tableRows is how many rows a table aligns together. It buffers no more.
const tableRows = 500

// table writes any number of rows in aligned columns.
type table struct {
	w    io.Writer
	rows [][]string
}

func NewTable(w io.Writer, titles ...string) *table {
	return &table{w: w, rows: [][]string{titles}}
}

func (t *table) Row(cells ...string) error {
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableRows {
		return nil
	}
	return t.Flush()
}

// Flush writes the buffered rows.
func (t *table) Flush() error {
	var b strings.Builder
	WriteTable(&b, t.rows)
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

// Story is a text of labelled lines.
type Story struct{ strings.Builder }

// Line adds a line. The label may be empty: the line goes on with what the one before is about.
func (s *Story) Line(label, format string, args ...any) {
	s.WriteString(strings.TrimRight(Pad(label, 14)+fmt.Sprintf(format, args...), " ") + "\n")
}
