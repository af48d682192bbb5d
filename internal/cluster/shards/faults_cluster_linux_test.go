//go:build cluster

package shards

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestClusterFaults is TestHeavyFaultsOfNodes with what takes longer: registers and requests that are lost, and a node
// with other settings.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	newFaults(t).happen([]fault{
		{"registers that cannot be read", (*faults).unreadableRegisters},
		{"requests for messages are lost", (*faults).lostRequests},
		{"a node with a shorter delay in its file", (*faults).shorterDelay},
	})
}

// unreadableRegisters: somebody writes nonsense to the register of each node in turn, and then of both. The nodes say
// again who they are.
func (f *faults) unreadableRegisters(t *testing.T) {
	js := f.erases().js
	for _, victims := range [][]*process{{f.pair[0]}, {f.pair[1]}, f.pair[:]} {
		for _, p := range victims {
			must.Get(js.Publish(t.Context(), names.Subject("member", p.name), []byte("nonsense")))(t)
		}
		f.eventually("the nodes can be read", func() error {
			s, err := membership.ReadSurvey(t.Context(), js, names)
			if err != nil {
				return err
			}
			for _, m := range s.Members {
				if m.State == membership.Unreadable {
					return fmt.Errorf("%s cannot", m.Node)
				}
			}
			return nil
		})
		f.goesOn("after that", 3)
	}
}

// lostRequests: the connections of the nodes break, and their next requests for messages come to nobody who answers.
func (f *faults) lostRequests(t *testing.T) {
	c := f.erases()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, p := range f.pair {
		lost, end := c.loseRequests(p.proxy)
		for range 2 { // for the registers and for a stream
			must.Get(lost.NextMsgWithContext(ctx))(t)
		}
		end()
	}
	f.goesOn("with requests that were lost", 3)
	f.eventually("the nodes have all shards", func() error {
		if n := len(f.pair[0].owned()) + len(f.pair[1].owned()); n < shards {
			return fmt.Errorf("%d shards", n)
		}
		return nil
	})
}

// shorterDelay: a node that has another delay in its file keeps that of the cluster.
func (f *faults) shorterDelay(t *testing.T) {
	f.alter = func(o *Options) {
		o.Cluster.Weight = 9 // so that it takes shards with hosts
		o.Crawl.Frontier.Politeness.Delay = time.Millisecond
		o.Settings = new(delays).of(&o.Crawl)
	}
	defer func() { f.alter = nil }()
	p := f.start(hasty, t.TempDir())
	f.eventually("it has hosts", func() error {
		owned := p.owned()
		if !slices.ContainsFunc(f.web.Sites(),
			func(host string) bool { return slices.Contains(owned, shardOf(host)) }) {
			return fmt.Errorf("it has %v", owned)
		}
		return nil
	})
	f.goesOn("with it", 3)
	followed, err := p.node.Agree(t.Context())
	assert.True(t, len(followed) == 1 && err == nil, "it follows in %q: %v", followed, err)
	p.leave()
	f.goesOn("after that", 3)
}
