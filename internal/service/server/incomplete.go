package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Incomplete says which parts of a cluster have not answered.
type Incomplete struct {
	Nodes  []string `json:"nodes,omitempty"` // that did not answer
	Shards []int    `json:"shards"`          // that are not in the answer, by number
	Why    []string `json:"why"`             // for people
}

// maxWhy is how many reasons an Incomplete has.
const maxWhy = 10

// MissingShards describes the shards that have not answered; nil if all have.
func MissingShards(failed map[int]error) *Incomplete {
	if len(failed) == 0 {
		return nil
	}
	m := new(Incomplete)
	for shard, err := range failed {
		m.Shards = append(m.Shards, shard)
		if len(m.Why) < maxWhy {
			m.Why = append(m.Why, err.Error())
		}
	}
	slices.Sort(m.Shards)
	slices.Sort(m.Why)
	return m
}

// SortedKeys returns the keys of a map in their order.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// maxListed is how many shards the error lists.
const maxListed = 20

// Error describes what is missing.
func (m *Incomplete) Error() string {
	text := "not all of the cluster has answered"
	if len(m.Shards) > 0 {
		text += "; missing are shards " + strings.Trim(fmt.Sprint(m.Shards[:min(len(m.Shards), maxListed)]), "[]")
		if more := len(m.Shards) - maxListed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if len(m.Nodes) > 0 {
		text += "; no answer from " + strings.Join(m.Nodes, ", ")
	}
	for _, why := range m.Why {
		text += "; " + why
	}
	return text
}

// wholly is the error of a command that has to reach all shards.
func wholly(lacking *Incomplete, err error) error {
	if err == nil && lacking != nil {
		return fmt.Errorf("the command was carried out where it could be; give it again: %w", lacking)
	}
	return err
}
