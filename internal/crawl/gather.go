package crawl

import "time"

// A commit costs nearly the same whatever it holds: it waits for the disk, and writes each row that it touches as a whole. So when one ends, what is done
// gathers for a while before the next begins: as long as there is something else to do meanwhile.
const (
	gatherTimes = 3                     // as long as the last commit took, so often
	gatherMost  = 50 * time.Millisecond // and no longer
	gatherItems = 5_000                 // nor with more than this
)

// gathering is the pause between two commits. The dispatcher owns it.
type gathering struct {
	over <-chan time.Time // nil: there is no pause
}

// begin begins the pause behind a commit.
func (g *gathering) begin(took time.Duration) {
	g.over = time.After(min(gatherTimes*took, gatherMost))
}

func (g *gathering) end() { g.over = nil }

// gathers reports whether the next commit is to wait for more. It is not where somebody waits for it, or nothing else is left to do.
func (r *run) gathers() bool {
	j := r.pending
	return r.gathering.over != nil && !r.draining && r.busy > 0 && j.size < min(gatherItems, r.portion.Items()) && j.bytes < maxPendingBytes/2 && len(j.orders)+len(j.drops) == 0
}
