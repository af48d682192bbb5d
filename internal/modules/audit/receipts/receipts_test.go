package receipts

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const keyName = "the key"

func testSign(letter string) (Sign, map[string]ed25519.PublicKey) {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(letter, ed25519.SeedSize)))
	sign := func(_ time.Time, content []byte) (string, []byte, error) {
		return keyName, ed25519.Sign(private, content), nil
	}
	return sign, map[string]ed25519.PublicKey{keyName: private.Public().(ed25519.PublicKey)}
}

// writeLog writes requests to a log, in files of about a megabyte and a half, and signs a head after every hundredth of
// them.
func writeLog(t testing.TB, dir string, requests int, sign Sign) (end time.Time) {
	t.Helper()
	l := must.Get(requestlog.Open(dir, requestlog.Options{MaxSize: 24 << 20},
		requestlog.Process{Began: began, Agent: "amble/1", Tokens: []string{"amble"}, Obey: true}))(t)
	for i := range requests {
		u := must.Get(weburl.Parse(fmt.Sprintf("https://host%d.test/articles/%d", i%50, i)))(t)
		end = began.Add(time.Duration(i) * time.Second)
		q := requestlog.Request{URL: u, Address: netip.MustParseAddr("192.0.2.7"), Sent: true,
			Start: end.Add(-time.Second / 2), Decided: end.Add(-time.Second / 2), End: end,
			Status: 200, Bytes: 1000, LedgerOffset: uint64(1000 + i)}
		must.Do(t, l.Add(&q))
		if i%(requests/100) == requests/100-1 {
			must.Do(t, l.Flush())
			must.Get(Append(dir, end, sign))(t)
		}
	}
	must.Do(t, l.Close())
	return end.Add(time.Hour)
}

// logFiles returns the files of a log, without that of the heads.
func logFiles(t testing.TB, dir string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(dir, "*.log")))(t)
}

func mustVerify(t testing.TB, dir string, keys map[string]ed25519.PublicKey, saved string, now time.Time) *Report {
	t.Helper()
	return must.Get(Verify(dir, keys, saved, now))(t)
}

func kinds(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// frameAt returns a byte range of one frame of a log file: a request line. Frames begin with their length.
func frameAt(t testing.TB, content []byte, n int) (from, to int) {
	t.Helper()
	for at := 0; at < len(content); n-- {
		size, width := 0, 0
		for shift := 0; ; shift += 7 {
			b := content[at+width]
			size |= int(b&0x7f) << shift
			if width++; b < 0x80 {
				break
			}
		}
		next := at + width + size + 4
		if n == 0 {
			return at, next
		}
		at = next
	}
	t.Fatal("the file has fewer frames")
	return 0, 0
}

// TestFindsEveryChange: among 100,000 requests, a changed, dropped, doubled or late line is found, wherever it is, and
// so are files that are gone, and changed or dropped heads.
func TestFindsEveryChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "requests")
	sign, keys := testSign("a")
	const requests = 100_000
	now := writeLog(t, dir, requests, sign)
	if r := mustVerify(t, dir, keys, "", now); len(r.Findings) > 0 || r.Heads != 100 || r.Bytes == 0 || r.Unsigned > 0 {
		t.Fatalf("an untouched log: %+v", r)
	}
	files := logFiles(t, dir)
	must.True(t, len(files) >= 3, "%d files", len(files))
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		name := files[random.IntN(len(files))]
		content := must.Get(os.ReadFile(name))(t)
		from, to := frameAt(t, content, 1+random.IntN(requests/len(files)/2))
		changed := slices.Clone(content)
		changed[from+2] ^= 1
		for what, text := range map[string][]byte{
			"changed": changed,
			"dropped": slices.Delete(slices.Clone(content), from, to),
			"doubled": slices.Insert(slices.Clone(content), from, content[from:to]...),
		} {
			must.Do(t, os.WriteFile(name, text, 0o600))
			r := mustVerify(t, dir, keys, "", now)
			if len(r.Findings) == 0 {
				t.Errorf("%s in %s at %d is not found", what, name, from)
			} else if f := r.Findings[0]; f.Kind != Changed || int(f.From) > from || int(f.To) < from ||
				f.File != filepath.Base(name) {
				t.Errorf("%s in %s at %d: %+v", what, name, from, f)
			}
		}
		must.Do(t, os.WriteFile(name, content, 0o600))
	}
	t.Run("late", func(t *testing.T) {
		content := must.Get(os.ReadFile(files[1]))(t)
		from, to := frameAt(t, content, 5)
		restore := slices.Clone(content)
		must.Do(t, os.WriteFile(files[1], append(content, content[from:to]...), 0o600))
		assert.Slice(t, kinds(mustVerify(t, dir, keys, "", now)), []string{Late})
		must.Do(t, os.WriteFile(files[1], restore, 0o600))
	})
	t.Run("files", func(t *testing.T) { testFilesGone(t, dir, files, keys, now) })
	t.Run("heads", func(t *testing.T) { testHeads(t, dir, keys, now) })
	assert.AtMost(t, len(mustVerify(t, dir, keys, "", now).Findings), 0, "the log as it")
}

// testFilesGone: the oldest file may go, as the bounds of the log have it; no other.
func testFilesGone(t *testing.T, dir string, files []string, keys map[string]ed25519.PublicKey, now time.Time) {
	for i, name := range files {
		must.Do(t, os.Rename(name, name+".away"))
		r := mustVerify(t, dir, keys, "", now)
		if i == 0 && (len(r.Findings) > 0 || r.Deleted != 1) {
			t.Errorf("the oldest file is deleted: %+v", r)
		} else if i > 0 && !slices.Contains(kinds(r), Dropped) {
			t.Errorf("file %d is gone: %+v", i, r)
		}
		must.Do(t, os.Rename(name+".away", name))
	}
}

// testHeads: a head that is changed, dropped, put elsewhere or signed by another key is found; those dropped at the end
// by whoever has kept one.
func testHeads(t *testing.T, dir string, keys map[string]ed25519.PublicKey, now time.Time) {
	name := filepath.Join(dir, FileName)
	text := must.Get(os.ReadFile(name))(t)
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[:len(lines)-1]
	saved := filepath.Join(t.TempDir(), "saved.jsonl")
	must.Do(t, os.WriteFile(saved, lines[len(lines)-1], 0o600))
	assert.AtMost(t, len(mustVerify(t, dir, keys, saved, now).Findings), 0, "a head that was kept")
	_, others := testSign("b")
	foreign := map[string]ed25519.PublicKey{"another": others[keyName]}
	for _, c := range []struct {
		name  string
		lines [][]byte
		keys  map[string]ed25519.PublicKey
		saved string
		now   time.Time
		want  string
	}{
		{"changed", replaced(lines, 50, bytes.Replace(lines[50], []byte(`"from":`), []byte(`"from":1`), 1)), keys, "",
			now, Broken},
		{"no JSON", replaced(lines, 50, []byte("{\n")), keys, "", now, Broken},
		{"dropped", slices.Delete(slices.Clone(lines), 50, 51), keys, "", now, Broken},
		{"the first ones dropped", lines[10:], keys, "", now, Broken},
		{"twice", slices.Insert(slices.Clone(lines), 50, lines[50]), keys, "", now, Broken},
		{"another key", lines, others, "", now, Broken},
		{"an unknown key", lines, foreign, "", now, Broken},
		{"of the future", lines, keys, "", began, Broken},
		{"the last ones dropped, and one was kept", lines[:90], keys, saved, now, Dropped},
	} {
		must.Do(t, os.WriteFile(name, bytes.Join(c.lines, nil), 0o600))
		if r := mustVerify(t, dir, c.keys, c.saved, c.now); !slices.Contains(kinds(r), c.want) {
			t.Errorf("%s: %v", c.name, kinds(r))
		}
	}
	must.Do(t, os.WriteFile(name, text, 0o600))
}

func replaced(lines [][]byte, at int, by []byte) [][]byte {
	lines = slices.Clone(lines)
	lines[at] = by
	return lines
}

// TestAppend: only what is new is signed, a line that a crash has cut is replaced, and the end that no head covers
// yet is no finding.
func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "requests")
	sign, keys := testSign("a")
	assert.Returns(Append(dir, began, sign))(t, false, "without a log")
	now := writeLog(t, dir, 1000, sign)
	assert.Returns(Append(dir, now, sign))(t, false, "nothing is new")
	name := filepath.Join(dir, FileName)
	text := must.Get(os.ReadFile(name))(t)
	must.Do(t, os.WriteFile(name, append(text, []byte(`{"head":{"at"`)...), 0o600))
	files := logFiles(t, dir)
	f := must.Get(os.OpenFile(files[len(files)-1], os.O_APPEND|os.O_WRONLY, 0))(t)
	must.Get(f.WriteString("more"))(t)
	must.Do(t, f.Close())
	r := mustVerify(t, dir, keys, "", now)
	assert.True(t, len(r.Findings) <= 0 && r.Unsigned == 4, "%+v", r)
	assert.Returns(Append(dir, now, sign))(t, true, "4 bytes are new")
	if r := mustVerify(t, dir, keys, "", now); len(r.Findings) > 0 || r.Unsigned != 0 || r.Heads != 101 {
		t.Errorf("%+v", r)
	}
	tail, err := Tail(dir)
	assert.True(t, err == nil && bytes.HasSuffix(tail, []byte("\n")) &&
		json.Valid(bytes.SplitAfter(tail, []byte("\n"))[0]), "%.200s, %v", tail, err)
}

// FuzzVerify: no file of heads ends the verification, and none that is not signed passes.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"head":{"at":"2026-11-20T12:00:00Z","previous":"","parts":[{"file":1,"from":0,"to":5}]},` +
		`"keyid":"k"}` + "\n"))
	dir := f.TempDir()
	_, keys := testSign("a")
	f.Fuzz(func(t *testing.T, text []byte) {
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), text, 0o600))
		r, err := Verify(dir, keys, "", began)
		assert.True(t, err != nil || r.Heads <= 0 || len(r.Findings) != 0, "%q passes", text)
	})
}

// BenchmarkReceipts: what signing costs a request, to compare with BenchmarkAppend of the request log and with a page.
func BenchmarkReceipts(b *testing.B) {
	sign, _ := testSign("a")
	const requests = 20_000
	dir := filepath.Join(b.TempDir(), "requests")
	writeLog(b, dir, requests, sign)
	for b.Loop() {
		must.Do(b, os.Remove(filepath.Join(dir, FileName)))
		made, err := Append(dir, began, sign)
		must.True(b, made && err == nil, "%v %v", made, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/requests, "ns/request")
}
