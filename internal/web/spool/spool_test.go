package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func open(t testing.TB, above, budget int64) *Pool {
	t.Helper()
	return must.Get(Open(Options{Dir: filepath.Join(t.TempDir(), "s[1]"), Above: above, Budget: budget}))(t)
}

// random returns n random bytes.
func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// check reads c with every method.
func check(t *testing.T, c *Content, want []byte) {
	t.Helper()
	must.True(t, c.Size() == int64(len(want)), "size %d, want %d", c.Size(), len(want))
	got, err := io.ReadAll(c.NewReader())
	assert.True(t, err == nil && bytes.Equal(got, want), "reader: %d bytes, %v", len(got), err)
	var b bytes.Buffer
	if n, err := c.WriteTo(&b); err != nil || n != int64(len(want)) || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("WriteTo: %d bytes, %v", n, err)
	}
	for _, n := range []int{0, 1, HeadBytes, HeadBytes + 1, len(want), len(want) + 1} {
		got, err := c.Load(make([]byte, 7), int64(n))
		assert.True(t, err == nil && bytes.Equal(got, want[:min(n, len(want))]), "Load %d: %d bytes, %v", n, len(got),
			err)
		head := c.Head(n)
		assert.True(t, bytes.Equal(head, want[:min(n, len(want), HeadBytes)]), "Head %d: %d bytes", n, len(head))
	}
	middle := make([]byte, len(want)/2)
	if _, err := c.NewReader().ReadAt(middle, int64(len(want)/4)); err != nil && len(middle) > 0 ||
		!bytes.Equal(middle, want[len(want)/4:][:len(middle)]) {
		t.Errorf("ReadAt: %v", err)
	}
	if got, in := c.Bytes(); in && !bytes.Equal(got, want) {
		t.Errorf("Bytes: %d bytes", len(got))
	}
}

// A content equals what was written, for every method of writing and in every place.
func TestContentIsWhatWasWritten(t *testing.T) {
	for _, size := range []int{0, 1, HeadBytes - 1, HeadBytes, HeadBytes + 1, 10_000, 65_535, 65_536, 65_537, 300_000} {
		want := random(size)
		methods := map[string]func(*Writer) error{
			"read": func(w *Writer) error { _, err := w.ReadFrom(bytes.NewReader(want)); return err },
			"read in pieces": func(w *Writer) error {
				_, err := w.ReadFrom(iotest.HalfReader(bytes.NewReader(want)))
				return err
			},
			"read with end": func(w *Writer) error {
				_, err := w.ReadFrom(iotest.DataErrReader(bytes.NewReader(want)))
				return err
			},
			"written": func(w *Writer) error {
				for rest := want; len(rest) > 0; {
					n := min(len(rest), 777)
					if _, err := w.Write(rest[:n]); err != nil {
						return err
					}
					rest = rest[n:]
				}
				return nil
			},
			"both": func(w *Writer) error {
				_, err := w.Write(want[:size/2])
				_, err2 := w.ReadFrom(bytes.NewReader(want[size/2:]))
				return errors.Join(err, err2)
			},
		}
		for name, write := range methods {
			for _, guess := range []int64{0, 100, int64(size) + 1} {
				for _, p := range []*Pool{nil, open(t, 65_536, 1<<20), open(t, HeadBytes, 1<<20),
					open(t, 1<<20, 20_000), open(t, 1<<20, 0)} {
					w := p.NewWriter(guess)
					must.Do(t, write(w))
					c := w.Content()
					check(t, c, want)
					if _, in := c.Bytes(); p != nil && in && int64(size) > min(p.o.Above, p.o.Budget) {
						t.Errorf("%s: %d bytes in memory, of a pool %+v", name, size, p.o)
					}
					if p != nil && p.Held() > p.o.Budget {
						t.Errorf("%d bytes held of %d", p.Held(), p.o.Budget)
					}
					must.Do(t, c.Close())
					assert.True(t, p.Held() == 0 && p.Files() == 0, "%s: %d bytes, %d files left", name, p.Held(),
						p.Files())
				}
			}
		}
	}
}

func TestTruncate(t *testing.T) {
	want := random(50_000)
	for _, p := range []*Pool{nil, open(t, HeadBytes, 1<<20)} {
		for _, n := range []int{0, 10, HeadBytes, 49_999, 50_000, 60_000} {
			w := p.NewWriter(0)
			must.Get(w.Write(want))(t)
			must.Do(t, w.Truncate(int64(n)))
			c := w.Content()
			check(t, c, want[:min(n, len(want))])
			_ = c.Close()
		}
	}
}

// Contents of many goroutines never hold more than the budget, and none waits for another.
func TestBudgetIsShared(t *testing.T) {
	p := open(t, 64<<10, 200_000)
	want := random(40_000)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var held []*Content
			for range 10 {
				w := p.NewWriter(0)
				_, err := w.ReadFrom(bytes.NewReader(want))
				assert.True(t, err == nil, "%v", err)
				held = append(held, w.Content())
			}
			for _, c := range held {
				got, err := io.ReadAll(c.NewReader())
				assert.True(t, err == nil && bytes.Equal(got, want), "%d bytes, %v", len(got), err)
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	assert.True(t, p.Held() == 0 && p.Files() == 0, "%d bytes, %d files left", p.Held(), p.Files())
}

// Files have no name while they are in use, and Open removes those of an earlier process.
func TestDirectoryIsEmpty(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"content-1.tmp", "content-abc.tmp", "notes.txt"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	p := must.Get(Open(Options{Dir: dir, Above: HeadBytes, Budget: 0}))(t)
	w := p.NewWriter(0)
	must.Get(io.Copy(w, strings.NewReader("hello")))(t)
	defer w.Discard()
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) == 1 && left[0].Name() == "notes.txt", "%v, %v", left, err)
}

func TestErrors(t *testing.T) {
	p := open(t, HeadBytes, 1<<20)
	must.Do(t, os.Remove(p.o.Dir))
	var failed *Error
	w := p.NewWriter(0)
	_, err := w.Write(random(10_000))
	assert.True(t, errors.As(err, &failed), "write: %v", err)
	w.Discard()
	w = p.NewWriter(0)
	if _, err := w.ReadFrom(bytes.NewReader(random(10_000))); !errors.As(err, &failed) {
		t.Errorf("read: %v", err)
	}
	w.Discard()
	w = p.NewWriter(0)
	broken := errors.New("broken")
	if _, err := w.ReadFrom(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))); err != broken ||
		w.Size() != 3 {
		t.Errorf("%v after %d bytes", err, w.Size())
	}
	c := w.Content()
	must.Do(t, errors.Join(c.Close(), (*Content)(nil).Close()))
	assert.Equal(t, c.Close(), errClosed, "second close")
	assert.Equal(t, p.Held(), 0, "bytes held")
	for _, o := range []Options{{Above: 1 << 20}, {Dir: "x", Above: 1}, {Dir: "x", Above: 1 << 20, Budget: -1}} {
		assert.True(t, o.Validate() != nil, "%+v is allowed", o)
	}
}

// The memory of a closed content is used for a later one of about its size. Two open contents never
// share memory.
func TestMemoryIsUsedAgain(t *testing.T) {
	p := open(t, 64<<10, 1<<20)
	var held []*Content
	for i := range 100 {
		w := p.NewWriter(int64(1 + i*600))
		for range 1 + i*500/10 {
			must.Get(w.Write(bytes.Repeat([]byte{byte(i)}, 10)))(t)
		}
		held = append(held, w.Content())
		if i%3 != 0 {
			continue
		}
		err := held[i/2].Close()
		must.True(t, err == nil || err == errClosed, "%v", err)
	}
	for i, c := range held {
		if c.closed {
			continue
		}
		if b, in := c.Bytes(); in && !bytes.Equal(b, bytes.Repeat([]byte{byte(i)}, len(b))) {
			t.Errorf("content %d has bytes of another", i)
		}
		must.Do(t, c.Close())
	}
	assert.Equal(t, p.Held(), 0, "bytes held")
	again := 0
	var last *byte
	for range 100 {
		w := p.NewWriter(20_000)
		must.Get(w.Write([]byte("x")))(t)
		if &w.mem[0] == last {
			again++
		}
		last = &w.mem[0]
		w.Discard()
	}
	if again == 0 { // not each time: the collector may take it, and under the race detector it sometimes does
		t.Error("memory is never used again")
	}
}

func TestRoom(t *testing.T) {
	sizes := make(map[int]int64)
	for n := int64(1); n < 1<<24; n += 1 + n/100 {
		room, at := roomOf(n)
		must.True(t, room >= n && room <= max(n+n/2, HeadBytes) && (sizes[at] == 0 || sizes[at] == room),
			"%d bytes get %d, size %d, which has %d", n, room, at, sizes[at])
		sizes[at] = room
	}
}

// Room stays within the budget, plus one holder at most. All callers get theirs, those that wait in
// order, and none that gives up keeps any.
func TestRoomForDecoders(t *testing.T) {
	p := open(t, 1<<20, 100)
	hold := func(n int64) func() {
		return must.Get(p.Reserve(t.Context(), n))(t)
	}
	first := hold(300) // more than the budget, and nobody else holds any
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() { _, err := p.Reserve(ctx, 200); errs <- err }()
	waits := func(n int) {
		for {
			p.reservations.mu.Lock()
			got := p.reservations.queue.Len()
			p.reservations.mu.Unlock()
			if got == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	waits(1)
	got := make(chan func())
	for i := range 2 {
		go func() { got <- hold(50) }()
		waits(2 + i)
	}
	assert.Equal(t, p.Held(), 300, "bytes held")
	cancel()
	assert.Is(t, <-errs, context.Canceled, "error")
	first()
	second, third := <-got, <-got
	assert.Equal(t, p.Held(), 100, "bytes held")
	w := p.NewWriter(1)
	_, _ = w.Write(random(10))
	if c := w.Content(); c.file == nil {
		t.Error("a content is in memory although decoders have it all")
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	second()
	third()
	if release, err := (*Pool)(nil).Reserve(t.Context(), 1<<40); err != nil {
		t.Error(err)
	} else {
		release()
	}
	assert.True(t, p.Held() == 0 && p.reservations.holders == 0 && p.reservations.queue.Len() == 0,
		"%d bytes held by %d", p.Held(), p.reservations.holders)
}

// Many goroutines that hold contents and need room never wait for one another for ever.
func TestRoomEndsInNoDeadlock(t *testing.T) {
	p := open(t, 64<<10, 100_000)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 50 {
				w := p.NewWriter(0)
				_, _ = w.Write(random(20_000))
				c := w.Content()
				release, err := p.Reserve(t.Context(), int64(10_000*(1+i%20)))
				if err != nil {
					t.Error(err)
					return
				}
				w = p.NewWriter(0)
				_, _ = w.Write(random(30_000))
				release()
				w.Discard()
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	assert.True(t, p.Held() == 0 && p.Files() == 0, "%d bytes, %d files left", p.Held(), p.Files())
}
