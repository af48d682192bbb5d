//go:build soak

package extract

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// counted are the packages whose statements TestSoakWorkIsLinear counts.
const counted = "github.com/amble-crawler/amble/internal/web/extract," +
	"github.com/amble-crawler/amble/internal/web/weburl," +
	"github.com/andybalholm/cascadia,github.com/PuerkitoBio/goquery,golang.org/x/net/html,golang.org/x/net/html/charset,golang.org/x/net/idna," +
	"golang.org/x/text/transform,golang.org/x/text/encoding/japanese,github.com/saintfish/chardet,encoding/json,strings,bytes,mime"

// TestSoakWorkIsLinear counts the executed statements, including those of the libraries, for a text
// and for one twice as long: the second count may be two and a half times the first. The compiler's
// coverage does the counting, in a process for each text.
func TestSoakWorkIsLinear(t *testing.T) {
	dir := t.TempDir()
	child := filepath.Join(dir, "child.test")
	if out, err := exec.Command("go", "test", "-c", "-cover", "-covermode=count", "-coverpkg="+counted, "-o", child,
		".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := statements(t, child, "references", 0) // what a process takes that reads next to nothing
	for name, f := range families() {
		once, twice := f.text(3000), f.text(6000)
		first, second := statements(t, child, name, 3000)-before, statements(t, child, name, 6000)-before
		t.Logf("%-50s %10d statements for %8d bytes, %10d for %8d", name, first, len(once), second, len(twice))
		assert.AtMost(t, float64(second), 2.5*float64(first)+100_000, name, first, "statements for", len(once), "bytes",
			second, len(twice))
	}
}

// statements returns how many statements the child executes for n units of a family.
func statements(t *testing.T, child, family string, units int) (n int) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	c := exec.Command(child, "-test.run", "^TestWorkChild$", "-test.coverprofile", profile)
	c.Env = append(os.Environ(), workFamily+"="+family, workUnits+"="+strconv.Itoa(units))
	out, err := c.CombinedOutput()
	must.True(t, err == nil, "%s of %d: %v\n%s", family, units, err, out)
	f := must.Get(os.Open(profile))(t)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() { // file.go:1.2,3.4 statements executions
		var inBlock, executed int
		if fields := strings.Fields(lines.Text()); len(fields) == 3 {
			must.Get(fmt.Sscan(fields[1], &inBlock))(t)
			must.Get(fmt.Sscan(fields[2], &executed))(t)
			n += inBlock * executed
		}
	}
	must.Do(t, lines.Err())
	return n
}
