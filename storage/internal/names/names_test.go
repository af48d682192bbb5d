package names

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// index is an Index in memory.
type index map[string]uint32

func (x index) Find(key []byte) (id uint32, found bool, next []byte) {
	if id, found := x[string(key)]; found {
		return id, true, nil
	}
	least := ""
	for k := range x {
		if k > string(key) && (least == "" || k < least) {
			least = k
		}
	}
	if least == "" {
		return 0, false, nil
	}
	return 0, false, []byte(least)
}

// TestNames compares ids with those of a map: of names in any order and in the order of their keys, with repetitions,
// several lists to a transaction, and transactions that fail.
func TestNames(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		var n Names
		stored, committed := index{}, map[string]uint32{}
		for range 12 {
			n.Begin()
			model, fails := map[string]uint32{}, random.IntN(4) == 0
			for name, id := range committed {
				model[name] = id
			}
			tx := index{}
			for key, id := range stored {
				tx[key] = id
			}
			for range 1 + random.IntN(3) {
				list := make([]string, random.IntN(12))
				for i := range list {
					list[i] = fmt.Sprintf("h%02d.test", random.IntN(60))
				}
				if random.IntN(2) == 0 {
					slices.SortFunc(list, func(a, b string) int {
						return strings.Compare(weburl.ReverseHost(a), weburl.ReverseHost(b))
					})
				}
				for _, name := range list {
					fresh := uint32(len(model)) + 1
					want, known := model[name]
					if !known {
						want, model[name] = fresh, fresh
					}
					if id, isNew := n.ID(name, tx, fresh); id != want || isNew == known {
						t.Fatalf("seed %d: %s has id %d (new: %t), want %d", seed, name, id, isNew, want)
					}
				}
				hosts := n.New()
				must.True(t, slices.IsSortedFunc(hosts, func(a, b Host) int { return strings.Compare(a.Key, b.Key) }),
					"seed %d: %v are not in the order of their keys", seed, hosts)
				for _, h := range hosts {
					tx[h.Key] = h.ID
				}
			}
			must.True(t, len(n.Added()) == len(model)-len(committed) && len(tx) == len(model),
				"seed %d: %d hosts added, %d in the index, want %d", seed, len(n.Added()), len(tx), len(model))
			if fails {
				n.Forget()
				continue
			}
			stored, committed = tx, model
		}
	}
}
