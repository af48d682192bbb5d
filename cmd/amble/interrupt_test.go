package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestUntilDone: a reader that waits for more is left when its context ends; until then it reads as any other.
func TestUntilDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if text, err := io.ReadAll(&untilDone{ctx, strings.NewReader("one\ntwo\n")}); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%q, %v", text, err)
	}
	r, w := io.Pipe()
	waits := &untilDone{ctx, r}
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(waits)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := waits.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = w.Close() // the read that was left ends
}
