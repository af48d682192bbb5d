package starts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte("amble-starts-1 0 boot\n1 - a.example 5\n2 - b.example -1\n"), uint64(0))
	f.Add([]byte("amble-starts-1 0 boot\n1 192.0.2.1 a.example 5 p,1,http://a.example/\n"), uint64(0))
	f.Add([]byte("amble-starts-1 77 boot\n1 - a.exam"), uint64(80))
	f.Add([]byte("amble-starts-1 18446744073709551615 boot\n"), uint64(1)<<63)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte, committed uint64) {
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), b, 0o644))
		last := committed
		uncommitted := must.Get(Read(dir, committed, "boot", func(offset uint64, s Start) {
			must.True(t, offset >= last && s.Host != "", "line of %+v at %d, behind %d", s, offset, last)
			last = offset
		}))(t)
		must.True(t, uncommitted.End >= committed, "the next ledger would begin at %d, before the mark %d",
			uncommitted.End, committed)
	})
}
