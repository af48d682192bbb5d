package crawl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyBadSync lets one sync of the database fail, as a failing disk does. The crawl ends with a
// message that is true; and the next one goes on from what is there, whether the system kept the
// meta page that could not be synced, or a restart of the machine brings back the one before. In real
// time: processes and their syncs fail.
func TestHeavyBadSync(t *testing.T) {
	t.Parallel()
	for _, sync := range []int{8, 9, 11, 13, 15, 17} { // the odd ones are of meta pages
		for _, forgotten := range []bool{false, true} {
			t.Run(fmt.Sprintf("sync=%d,forgotten=%t", sync, forgotten), func(t *testing.T) {
				t.Parallel()
				small := chaos{hosts: 2, pages: 26}
				web := startWeb(t, small.sites()...)
				c := childConfig{
					Resolver: web.ResolverAddr(), Delay: 20 * time.Millisecond, Seeds: seedsOf(web, web.Sites()),
					Formats: allFormats, Compress: archive.CompressNone, BadSync: sync,
				}
				dir, o := prepareChild(t, c)
				text, failed := childFails(t, dir)
				inDoubt := strings.Contains(text, storage.ErrInDoubt.Error())
				switch {
				case strings.Contains(text, "install a seccomp filter"):
					t.Skip(text)
				case !failed || !strings.Contains(text, "input/output error") || inDoubt != (sync%2 == 1):
					t.Fatalf("the crawl ended with: %s", text)
				}
				if forgotten && inDoubt {
					forgetMeta(t, filepath.Join(o.DataDir, storage.FileName))
				}
				c.BadSync = 0
				testkit.PrepareChild(t, dir, c)
				_, done := startChild(t, dir)
				must.Do(t, <-done)
				checkOutput(t, o)
				small.checkPages(t, web.Requests())
			})
		}
	}
}

// childFails runs a child to its end, and returns its output.
func childFails(t *testing.T, dir string) (output string, failed bool) {
	t.Helper()
	child := testkit.Child(t, childDir, dir)
	child.Stderr = nil
	out, err := child.CombinedOutput()
	return string(out), err != nil
}

// forgetMeta makes the newer of the two meta pages of a database invalid, so that the one before is
// in force, as after a restart of the machine without it.
func forgetMeta(t *testing.T, path string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	newest, _, err := newestMeta(f)
	must.Do(t, err)
	must.Get(f.WriteAt(bytes.Repeat([]byte{0xff}, 80), newest))(t)
}
