package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestByWall: what is kept of a run is summed up by wall, and names no host.
func TestByWall(t *testing.T) {
	all := []identity.OriginAnswers{
		{Origin: "https://a.test", Wall: "Maker", Unsigned: identity.Answers{Served: 1, Refused: 2},
			Signed: identity.Answers{Served: 3, Refused: 4}},
		{Origin: "https://b.test", Wall: "Maker", Unsigned: identity.Answers{Refused: 10}},
		{Origin: "https://c.test", Signed: identity.Answers{Served: 5}},
	}
	want := []identity.OriginAnswers{
		{Origin: "all origins", Signed: identity.Answers{Served: 5}},
		{Origin: "all origins", Wall: "Maker", Unsigned: identity.Answers{Served: 1, Refused: 12},
			Signed: identity.Answers{Served: 3, Refused: 4}},
	}
	assert.Slice(t, byWall(all), want)
}

// TestAnswersOfEarlierRun: without a file there is nothing to say, and one that cannot be read says so.
func TestAnswersOfEarlierRun(t *testing.T) {
	dir := t.TempDir()
	var p Program
	if text, _, rows, err := p.Answers(dir); text != "" || rows != nil || err != nil {
		t.Error(text, rows, err)
	}
	kept := `{"at":"2026-11-20T12:00:00Z","walls":[{"origin":"all origins","asked":false,"unsigned":{"served":0,` +
		`"refused":7},"signed":{"served":6,"refused":0},"wall":"Maker"}]}`
	write := func(text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, answersFile), []byte(text), 0o600))
	}
	write(kept)
	text, columns, rows, err := p.Answers(dir)
	assert.True(t, err == nil && strings.Contains(text, "ended at 2026-11-20T12:00:00Z") && len(columns) == 6 &&
		len(rows) == 1 && slices.Equal(rows[0], []string{"all origins", "Maker", "0", "7", "6", "0"}), "%v: %q, %q, %q",
		err, text, columns, rows)
	write("{")
	if _, _, _, err := p.Answers(dir); err == nil {
		t.Error("a damaged file is no error")
	}
}
