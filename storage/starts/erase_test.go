package starts

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// TestErase: what is left of a ledger holds the same hosts back, except those that are erased,
// and all requests have the offsets that they had.
func TestErase(t *testing.T) {
	names := weburl.Names{Name: "b.test", Below: true}
	dir := t.TempDir()
	l := must.Get(Open(dir, "boot", 700))(t)
	at := someTime
	add := func(host, note string) uint64 {
		return must.Get(l.Append(Start{Host: host, Address: "192.0.2.1", At: at, Delay: time.Second, Note: note}))(t)
	}
	add("b.test", "page,0,,http://b.test/old")
	committed := add("a.test", "page,0,,http://a.test/1")
	add("www.b.test", "page,0,,http://www.b.test/1")
	add("c.test", "robots,0,http://b.test,http://c.test/robots.txt")
	last := add("a.test", "page,0,,http://a.test/2")
	for _, host := range []string{"b.test", "a.test"} {
		must.Do(t, l.AppendWait(Wait{Host: host, At: at, Wait: time.Minute}))
	}
	must.Do(t, l.AppendEnd(at))
	must.Do(t, l.Close())
	path := filepath.Join(dir, FileName)
	whole := readFile(t, path)
	before, err := Read(dir, committed, "boot", nil)
	must.True(t, err == nil && !before.Everyone, "%v %v", before, err)
	counted, erased := 0, 0
	for _, dry := range []bool{true, false} {
		must.Do(t, Erase(dir, committed, names, dry, func(lines int) error {
			if counted = lines; !dry {
				erased = lines
			}
			return nil
		}))
		assert.True(t, !dry || bytes.Equal(readFile(t, path), whole), "a dry run changes the file")
	}
	assert.True(t, counted == 4 && erased == 4 && !names.In(readFile(t, path)), "%d lines are erased of %d:\n%s",
		erased, counted, readFile(t, path))
	notes := make(map[uint64]string)
	after, err := Read(dir, committed, "boot", func(offset uint64, s Start) { notes[offset] = s.Note })
	must.True(t, err == nil && !after.Everyone && after.End == before.End && after.Ended && !after.Died,
		"%+v, was %+v: %v", after, before, err)
	assert.True(t, len(notes) == 4 && notes[committed] == "page,0,,http://a.test/1" &&
		notes[last] == "page,0,,http://a.test/2", "requests are %v", notes)
	for _, host := range []string{"a.test", "c.test"} {
		assert.Equal(t, after.Hosts[host], before.Hosts[host], "the delay of", host)
	}
	assert.True(t, len(after.Waits) == 2 && after.Waits["a.test"] == before.Waits["a.test"], "waits are %v",
		after.Waits)
	// A ledger that holds all hosts back still does.
	for name, text := range map[string]string{
		"damaged": "amble-starts-1 700 boot\nb.test\n", "no header": "b.test",
		"a wrong mark": "amble-starts-1 9999 boot\n1 - b.test 1\n",
		"torn":         string(whole[:len(whole)-3]) + "b.test",
	} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		before := must.Get(Read(dir, 700, "boot", nil))(t)
		must.Do(t, Erase(dir, 700, names, false, func(int) error { return nil }), name)
		after, err := Read(dir, 700, "boot", nil)
		if err != nil || before.Everyone != after.Everyone || name != "torn" && after.End != before.End ||
			names.In(readFile(t, path)) {
			t.Errorf("%s: %+v, was %+v: %v\n%s", name, after, before, err, readFile(t, path))
		}
	}
	must.Do(t, Erase(t.TempDir(), 0, names, false, func(int) error { return nil }))
}
