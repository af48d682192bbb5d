package shards

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// suspensions are the commands that a node was given.
type suspensions []string

func (s *suspensions) Suspend(why string) { *s = append(*s, why) }

func (s *suspensions) Resume() { *s = append(*s, "resume") }

// TestFullDisk: a node whose disk is full for a minute hands over its shards, and takes shards again when there is
// twice the room that has to be; less than a minute, and a disk that cannot be examined, say nothing.
func TestFullDisk(t *testing.T) {
	const min = 100 << 20
	var commands suspensions
	free := map[string]uint64{"data": 10 * min, "output": 10 * min}
	d := &diskWatch{
		node: &commands, log: slog.New(slog.DiscardHandler), dirs: []string{"data", "output", "gone"}, least: min,
		free: func(dir string) (uint64, error) {
			if n, known := free[dir]; known {
				return n, nil
			}
			return 0, errors.New("there is no such directory")
		},
	}
	now := time.Unix(1_800_000_000, 0)
	lasts := func(output uint64, how time.Duration) {
		free["output"] = output
		for end := now.Add(how); now.Before(end); now = now.Add(lookAgain) {
			d.look(now)
		}
	}
	lasts(min-1, 50*time.Second)
	lasts(min, time.Minute)
	lasts(0, 50*time.Second)
	lasts(min, lookAgain)
	must.True(t, len(commands) == 0, "a disk that was full for less than a minute: %q", commands)
	lasts(min-1, 10*time.Minute)
	must.True(t, len(commands) == 1 && strings.Contains(commands[0], "output has 99 MiB free"), "a full disk: %q",
		commands)
	lasts(2*min-1, 10*time.Minute)
	lasts(2*min, time.Minute)
	assert.True(t, slices.Equal(commands, []string{commands[0], "resume"}), "a disk with room again: %q", commands)
	lasts(0, 2*time.Minute)
	assert.Equal(t, len(commands), 3, "it is full once more", commands)
}
