package membership

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPermissions: FORMAT.md lists the subjects that a node needs.
func TestPermissions(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	var publish, subscribe []string
	rows := regexp.MustCompile("(?m)^\\| (publish|subscribe) \\| `([^`]+)` \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		if row[1] == "subscribe" {
			subscribe = append(subscribe, row[2])
			continue
		}
		publish = append(publish, row[2])
		if strings.Contains(row[2], names.Stream()) {
			for _, stream := range []string{names.Incoming(), "OBJ_" + names.Bucket()} {
				publish = append(publish, strings.Replace(row[2], names.Stream(), stream, 1))
			}
		}
	}
	wantPublish, wantSubscribe := names.Permissions()
	slices.Sort(publish)
	slices.Sort(wantPublish)
	if !slices.Equal(publish, wantPublish) || !slices.Equal(subscribe, wantSubscribe) {
		t.Errorf("FORMAT.md has %q and %q, want %q and %q", publish, subscribe, wantPublish, wantSubscribe)
	}
}
