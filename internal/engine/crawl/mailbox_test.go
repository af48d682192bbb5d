package crawl

import (
	"context"
	"errors"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// TestMailbox: a call returns when it has run, a command when the commit that it is part of has
// ended, with what came of that; none of them waits for a dispatcher that is not there.
func TestMailbox(t *testing.T) {
	nothing, refused, torn := func(*dispatcher) error { return nil }, errors.New("refused"), errors.New("torn")
	var none *mailbox
	if err := none.call(t.Context(), nil); !errors.Is(err, ErrNotRunning) || none.isOpen() {
		t.Errorf("before a run: %v", err)
	}
	d := testDispatcher(t)
	m := d.mailbox
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Is(t, m.submit(canceled, nothing), context.Canceled, "nobody takes the call")
	for name, test := range map[string]struct {
		command  func(*dispatcher) error
		outcomes []error // of commits
		want     error
	}{
		"committed":       {nothing, []error{nil}, nil},
		"not committed":   {nothing, []error{torn}, torn},
		"refused":         {func(*dispatcher) error { return refused }, nil, refused},
		"never committed": {nothing, []error{ErrNotRunning}, ErrNotRunning},
	} {
		answer := make(chan error)
		go func() { answer <- m.submit(t.Context(), test.command) }()
		(<-m.calls)(d)
		for _, outcome := range test.outcomes {
			select {
			case err := <-answer:
				t.Fatalf("%s: answered before the commit: %v", name, err)
			default:
			}
			_, b := d.nextBatch()
			assert.True(t, b != nil && len(b.waiting) == 1, "%s: the batch is %+v", name, b)
			d.pending.answer(outcome)
		}
		if err := <-answer; !errors.Is(err, test.want) || test.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	d.addition = &addition{answer: make(chan lists.Added, 1)}
	waits := d.addition.answer
	d.refuseAll(m)
	assert.Is(t, (<-waits).Err, ErrNotRunning, "an addition at the end")
	_, err := m.add(t.Context(), &addition{Rows: lists.Rows{Again: make([]storage.Done, 1)}})
	callErr := m.call(t.Context(), nil)
	assert.True(t, errors.Is(callErr, ErrNotRunning) && errors.Is(err, ErrNotRunning) && !m.isOpen(),
		"after the end: %v, %v", callErr, err)
}
