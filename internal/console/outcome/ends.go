package outcome

import (
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

// The ends of amble run with an error, besides those of package crawl.
const (
	EndNoSeed   crawl.End = "no_seed"
	EndNothing  crawl.End = "nothing"
	EndUsage    crawl.End = "usage"
	EndInUse    crawl.End = "in_use"
	EndRefused  crawl.End = "refused"
	EndDamaged  crawl.End = "damaged"
	EndDiskFull crawl.End = "disk_full"
	EndFailed   crawl.End = "failed"
)

// Kind is a way in which amble run ends.
type Kind struct {
	End  crawl.End
	Code int    // of the process
	Text string // what it means
}

// Ends returns all ways in which amble run ends: its exit codes, its summary, amble run --json and the API say which.
func Ends() []Kind {
	return []Kind{
		{crawl.EndDone, console.ExitDone, "all is done, or postponed"},
		{crawl.EndStopped, console.ExitDone, "a signal or amble control stop has stopped it"},
		{crawl.EndMaxPages, console.ExitDone, "crawl.max_pages is reached"},
		{crawl.EndMaxBytes, console.ExitDone, "crawl.max_bytes is reached"},
		{crawl.EndMaxTime, console.ExitDone, "crawl.max_time is over"},
		{EndNoSeed, console.ExitNoSeed, "no seed could be fetched"},
		{EndNothing, console.ExitUsage, "there is nothing to crawl"},
		{EndUsage, console.ExitUsage, "wrong usage or settings"},
		{EndInUse, console.ExitInUse, "another process has the database"},
		{EndRefused, console.ExitRefused, "the cluster refuses this node"},
		{EndDamaged, console.ExitDamaged, "the database is damaged, or is none"},
		{EndDiskFull, console.ExitProblem, "it was stopped while the disk was full, so not all is committed"},
		{EndFailed, console.ExitProblem, "another error, which is printed"},
	}
}

// EndOf returns how a run with an error and its exit code has ended.
func EndOf(err error, code int) crawl.End {
	switch {
	case errors.Is(err, crawl.ErrNothing):
		return EndNothing
	case errors.Is(err, storage.ErrNoSpace) && code == console.ExitProblem:
		return EndDiskFull
	}
	for _, k := range Ends() {
		if k.Code == code && k.Code != console.ExitDone && k.End != EndNothing && k.End != EndDiskFull {
			return k.End
		}
	}
	return EndFailed
}

// NothingInside returns the crawl.ErrNothing of a crawl whose seeds the scope excludes.
func NothingInside(seeds int) error { return nothingInside(allSeeds(seeds)) }

type nothingInside string

func (n nothingInside) Error() string {
	return fmt.Sprintf("there is nothing to crawl: %s outside of scope.include or inside of scope.exclude, see the "+
		"warnings above", string(n))
}

func (n nothingInside) Unwrap() error { return crawl.ErrNothing }

func allSeeds(n int) string {
	if n == 1 {
		return "the only seed is"
	}
	return "all " + console.Grouped(n) + " seeds are"
}
