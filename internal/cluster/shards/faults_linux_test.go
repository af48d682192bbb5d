package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// fault is something that may happen to a cluster.
type fault struct {
	name string
	test func(*faults, *testing.T)
}

// TestHeavyFaultsOfNodes: what may happen to a cluster while no node dies. Whatever it is, no page is requested
// twice, and each host has its delay.
func TestHeavyFaultsOfNodes(t *testing.T) {
	t.Parallel()
	newFaults(t).happen([]fault{
		{"two nodes with one name", (*faults).takenName},
		{"one name and other settings", (*faults).otherSettings},
		{"another version", (*faults).otherVersion},
		{"clock steps by an hour", (*faults).clockSteps},
		{"slow NATS", (*faults).slowServers},
		{"nodes join and leave", (*faults).nodesComeAndGo},
		{"rolling restart", (*faults).rollingRestart},
	})
}

// TestHeavyFaultsOfServers is TestHeavyFaultsOfNodes for NATS servers that fail.
func TestHeavyFaultsOfServers(t *testing.T) {
	t.Parallel()
	newFaults(t).happen([]fault{
		{"restart of all NATS servers", (*faults).serversRestart},
		{"disk of a NATS server full", (*faults).diskFull},
	})
}

// happen has faults happen one after the other, then the crawl ends and is judged.
func (f *faults) happen(list []fault) {
	t := f.t
	for _, one := range list {
		start := time.Now()
		if !t.Run(one.name, func(t *testing.T) { one.test(f, t) }) {
			break
		}
		t.Logf("%s: %v, %d requests", one.name, time.Since(start).Round(time.Millisecond), len(f.web.Requests()))
	}
	want := f.finish(f.growing)
	for _, p := range f.pair {
		p.leave()
	}
	f.checkRepeats(want)
}

// faults is a cluster of two nodes that crawl a web for as long as there are faults.
type faults struct {
	*world
	growing *growing
	disk    string        // of the NATS server; empty: it cannot be filled
	clock   testkit.Clock // of the first node
	pair    [2]*process
}

func newFaults(t *testing.T) *faults {
	f := &faults{growing: newGrowing(6, 1)}
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=64m"); err == nil {
		f.disk = directory
		t.Cleanup(func() {
			assert.NoError(t, syscall.Unmount(directory, 0))
		})
	}
	servers := natstest.Start(t, names, 1, func(_ int, o *natsconn.ServerOptions) { o.Directory = directory })
	web := serve(t, f.growing.sites)
	f.world = newWorldOf(t, web, allSeeds(t, web), servers, 200*time.Millisecond, 2*shortTTL)
	f.alter = func(o *Options) {
		o.Crawl.Now, o.Settings = f.clock.Now, new(delays).of(&o.Crawl)
	}
	f.pair[0] = f.start("first", t.TempDir())
	f.alter = func(o *Options) { o.Settings = new(delays).of(&o.Crawl) }
	f.pair[1] = f.start("second", t.TempDir())
	f.alter = nil
	f.goesOn("after the start", 3)
	return f
}

// standsStill waits until no node may make a request.
func (f *faults) standsStill() {
	f.t.Helper()
	f.eventually("the crawl stands still", func() error {
		for _, p := range f.pair {
			if p.node.Status().Trust > 0 {
				return errNotYet
			}
		}
		return nil
	})
}

// tryOpen opens and runs a node that the cluster refuses.
func (f *faults) tryOpen(t *testing.T, name string, alter func(*Options)) error {
	t.Helper()
	nc, js := natstest.Connect(t, natsconn.Options{URLs: f.servers.URLs(), Node: name, Names: names})
	defer nc.Close()
	o := nodeOptions(crawlOptions(f.web, t.TempDir(), name, f.delay), name, f.ttl)
	o.Seeds = allSeeds(t, f.web)
	alter(&o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var n *Node
	if err := untilUp(ctx, func() (err error) {
		n, err = Open(ctx, nc, js, o, logger(t))
		return err
	}); err != nil {
		return err
	}
	return n.Run(ctx)
}

func (f *faults) takenName(t *testing.T) {
	err := f.tryOpen(t, "first", func(*Options) {})
	assert.True(t, errors.Is(err, membership.ErrNameTaken) && strings.Contains(err.Error(), "cluster.node"),
		"a second node with the name: %v", err)
}

func (f *faults) otherSettings(t *testing.T) {
	err := f.tryOpen(t, "third", func(o *Options) {
		o.Agreed, o.Cluster.Shards = map[string]string{"scope.mode": "any"}, 2*shards
	})
	for _, want := range []string{
		"cluster web", "scope.mode is", "cluster.shards is 4 there and 8 here", "another cluster.name",
	} {
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
}

// otherVersion: the settings in the registers are those of a later version.
func (f *faults) otherVersion(t *testing.T) {
	nc, js := natstest.Connect(t, natsconn.Options{URLs: f.servers.URLs(), Node: "test", Names: names})
	defer nc.Close()
	stream := must.Get(js.Stream(t.Context(), names.Stream()))(t)
	m := must.Get(stream.GetLastMsgForSubject(t.Context(), names.Subject("settings")))(t)
	for _, data := range [][]byte{append([]byte{m.Data[0] + 1}, m.Data[1:]...), m.Data} {
		must.Get(js.Publish(t.Context(), names.Subject("settings"), data))(t)
		if &data[0] == &m.Data[0] {
			break // as it was
		}
		err := f.tryOpen(t, "third", func(*Options) {})
		assert.True(t, err != nil && strings.Contains(err.Error(), "use the same version on all nodes"),
			"another version: %v", err)
	}
}

func (f *faults) clockSteps(*testing.T) {
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour, time.Hour} {
		f.clock.Set(step)
		f.goesOn("after a step of "+step.String(), 3)
	}
}

// slowServers: a round trip takes a fortieth of the TTL, as half a second is of the TTL of 20 s.
func (f *faults) slowServers(*testing.T) {
	for _, p := range f.pair {
		p.proxy.Delay(f.ttl / 80) // each way
	}
	f.goesOn("with slow servers", 12)
	for _, p := range f.pair {
		p.proxy.Delay(0)
	}
}

func (f *faults) serversRestart(t *testing.T) {
	f.servers.Stop(0)
	f.standsStill()
	still := time.Now()
	time.Sleep(2 * f.delay) // for requests that should not be made
	f.checkStill(t, still)
	f.servers.Start(0)
	f.goesOn("after the restart", 3)
}

// diskFull fills the file system of the server until it stores nothing any more.
func (f *faults) diskFull(t *testing.T) {
	if f.disk == "" {
		t.Skip("needs the right to mount a file system")
	}
	ballast := filepath.Join(f.disk, "ballast")
	must.Do(t, fill(ballast))
	f.standsStill()
	still := time.Now()
	time.Sleep(2 * f.delay) // for requests that should not be made
	f.checkStill(t, still)
	must.Do(t, os.Remove(ballast))
	f.servers.Stop(0)
	f.servers.Start(0)
	f.goesOn("with room on the disk", 3)
}

// fill makes a file of all the room that a file system has.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; { // to the last byte
		if _, err := file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return file.Close()
}

func (f *faults) nodesComeAndGo(t *testing.T) {
	dir := t.TempDir()
	f.alter = func(o *Options) { o.Cluster.Weight = 9 } // so that it takes shards with hosts
	defer func() { f.alter = nil }()
	for range 2 {
		p := f.start("visitor", dir)
		f.eventually("the visitor has shards", func() error {
			owned := p.owned()
			if !slices.ContainsFunc(f.web.Sites(),
				func(host string) bool { return slices.Contains(owned, shardOf(host)) }) {
				return fmt.Errorf("it has %v", owned)
			}
			return nil
		})
		p.leave()
	}
	f.goesOn("after that", 3)
}

func (f *faults) rollingRestart(t *testing.T) {
	for i, p := range f.pair {
		p.leave()
		f.pair[i] = f.start(p.name, p.dir)
		f.pair[i].takes(1)
	}
	f.goesOn("after the restarts", 3)
}
