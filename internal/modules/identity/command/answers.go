//go:build !core

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/system"
)

// answersFile has, in the data directory, what signed requests changed in the run that ended last: by wall, since no
// erasure looks there for names of hosts.
const answersFile = "signed.json"

// keptAnswers is the content of answersFile.
type keptAnswers struct {
	At    time.Time                `json:"at"`
	Walls []identity.OriginAnswers `json:"walls"`
}

// Answers returns what signed requests changed as a table: by wall and by origin, of this process or, given a data
// directory, by wall of the run that ended last. Without a text there is nothing to say.
func (p Program) Answers(dataDir string) (text string, columns []string, rows [][]string, err error) {
	text = "Responses over https before and after requests were signed, of origins that refused one or asked for " +
		"signatures, "
	var all []identity.OriginAnswers
	if dataDir == "" {
		origins := p.Origins()
		text, all = text+"since the process began.", append(byWall(origins), origins...)
	} else {
		k, err := readAnswers(filepath.Join(dataDir, answersFile))
		if err != nil {
			return "", nil, nil, err
		}
		text, all = text+"in the run that ended at "+k.At.UTC().Format(time.RFC3339)+".", k.Walls
	}
	for _, o := range all {
		n := func(n uint64) string { return strconv.FormatUint(n, 10) }
		rows = append(rows, []string{o.Origin, cmp.Or(o.Wall, "unknown"), n(o.Unsigned.Served), n(o.Unsigned.Refused),
			n(o.Signed.Served), n(o.Signed.Refused)})
	}
	if len(rows) == 0 {
		return "", nil, nil, nil
	}
	return text, []string{"of", "wall", "unsigned: served", "unsigned: refused", "signed: served",
		"signed: refused"}, rows, nil
}

// byWall sums answers up by wall. The sums name no host.
func byWall(all []identity.OriginAnswers) (sums []identity.OriginAnswers) {
	walls := make(map[string]identity.OriginAnswers)
	for _, o := range all {
		w := walls[o.Wall]
		w.Origin, w.Wall = "all origins", o.Wall
		w.Unsigned.Served += o.Unsigned.Served
		w.Unsigned.Refused += o.Unsigned.Refused
		w.Signed.Served += o.Signed.Served
		w.Signed.Refused += o.Signed.Refused
		walls[o.Wall] = w
	}
	for _, name := range slices.Sorted(maps.Keys(walls)) {
		sums = append(sums, walls[name])
	}
	return sums
}

// keepAnswers keeps at the end of a run what signed requests changed. Without anything to say it keeps nothing.
func (p Program) keepAnswers(dataDir string) error {
	k := keptAnswers{p.Now().UTC(), byWall(p.Origins())}
	if len(k.Walls) == 0 {
		return nil
	}
	text, err := json.Marshal(k)
	if err == nil {
		err = system.ReplaceFile(filepath.Join(dataDir, answersFile), text, 0o640, func() error { return nil })
	}
	return err
}

// readAnswers reads a file that keepAnswers wrote. If there is none there is nothing to say.
func readAnswers(name string) (k keptAnswers, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil {
		err = fmt.Errorf("read what signed requests changed: %w", err)
	}
	return k, err
}
